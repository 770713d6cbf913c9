-- Thngs of a product in order of creation, page by page.
CREATE INDEX thngs_product_order ON thngs (account_id, product_id, created_at, seq);
