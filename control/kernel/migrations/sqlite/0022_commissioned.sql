-- By serial number (`gs1:21`), for lists of commissioning states; a Thng that was never commissioned is not in it.
CREATE INDEX thngs_commissioned ON thngs (doc ->> '$.identifiers."gs1:21"', commission_product)
    WHERE commission_state IS NOT NULL;
