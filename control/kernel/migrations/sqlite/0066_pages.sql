-- What people see where a code leads nowhere, as JSON: of all domains of an account, and of one. Nothing: the words of the edge.
ALTER TABLE accounts ADD COLUMN pages TEXT;
ALTER TABLE short_domains ADD COLUMN pages TEXT;
