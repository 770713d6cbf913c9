-- When a link leads to its target, and where it leads at other times, as edges get it; nothing for links that always do.
ALTER TABLE redirections ADD COLUMN availability JSONB;
