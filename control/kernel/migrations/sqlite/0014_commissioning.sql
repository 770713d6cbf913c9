-- What the factory declared of a Thng; null for one that was never commissioned. The product is that of the last
-- commission and stays when the Thng is withdrawn; `commission` holds the rest, with the steps so far.
ALTER TABLE thngs ADD COLUMN commission_state TEXT;
ALTER TABLE thngs ADD COLUMN commission_product TEXT;
ALTER TABLE thngs ADD COLUMN commission TEXT;
