-- Which paths of a short domain lead to its links: a document with pathPrefix, prefixInUrls and multiSegment; nothing for `/SHORTID`
-- alone.
ALTER TABLE short_domains ADD COLUMN paths JSONB;
