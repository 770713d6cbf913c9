-- Orders of printed codes. `lease_until` is on the clock of the database; `fence` grows with each worker that takes one;
-- `failures` counts the tries since the last step. `settled` is 1 when the order has ended and nothing of its work is left.
CREATE TABLE print_orders (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT   NOT NULL UNIQUE,
    account_id    TEXT   NOT NULL REFERENCES accounts (id),
    name          TEXT   NOT NULL,
    status        TEXT   NOT NULL,
    doc           TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    completed_at  BIGINT,
    files_until   BIGINT,
    settled       BIGINT NOT NULL DEFAULT 0,
    lease_until   BIGINT NOT NULL DEFAULT 0,
    fence         BIGINT NOT NULL DEFAULT 0,
    failures      BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX print_orders_account ON print_orders (account_id, created_at, seq);
CREATE INDEX print_orders_open ON print_orders (lease_until, seq) WHERE settled = 0;
CREATE INDEX print_orders_files ON print_orders (files_until) WHERE files_until IS NOT NULL;
-- The codes of an order in the order of its pages, some in each row: `first` is the place of the first one.
CREATE TABLE print_codes (
    print_order  BIGINT NOT NULL REFERENCES print_orders (seq),
    first        BIGINT NOT NULL,
    count        BIGINT NOT NULL,
    codes        TEXT   NOT NULL,
    PRIMARY KEY (print_order, first)
);
-- What is rendered of an order; the bytes are a blob.
CREATE TABLE print_chunks (
    print_order  BIGINT NOT NULL REFERENCES print_orders (seq),
    number       BIGINT NOT NULL,
    blob         TEXT   NOT NULL,
    doc          TEXT   NOT NULL,
    PRIMARY KEY (print_order, number)
);
-- The next number that print orders give as a serial of a product, behind a prefix.
CREATE TABLE print_serials (
    account_id   TEXT   NOT NULL REFERENCES accounts (id),
    product_id   TEXT   NOT NULL,
    prefix       TEXT   NOT NULL,
    next_number  BIGINT NOT NULL,
    PRIMARY KEY (account_id, product_id, prefix)
);
