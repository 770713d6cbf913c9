-- The status code with which a link leads to its target; nothing for 307, which links have that name none.
ALTER TABLE redirections ADD COLUMN status_code BIGINT;
-- Seconds for which browsers and shared caches may keep redirects of a domain; nothing where they must not.
ALTER TABLE short_domains ADD COLUMN redirect_max_age BIGINT;
