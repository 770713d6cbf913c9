//! The columns of the table of redirections, for every statement that reads whole rows.

/// `$of` stands before each column: `r.` for a table that is called `r`.
macro_rules! redirection_columns {
    ($of:literal) => {
        concat!(
            $of,
            "seq, ",
            $of,
            "domain, ",
            $of,
            "folded, ",
            $of,
            "short_id, ",
            $of,
            "account_id, ",
            $of,
            "type, ",
            $of,
            "platform_id, ",
            $of,
            "thng_id, ",
            $of,
            "product_id, ",
            $of,
            "target, ",
            $of,
            "forward_query, ",
            $of,
            "status_code, ",
            $of,
            "availability, ",
            $of,
            "scopes, ",
            $of,
            "hits, ",
            $of,
            "created_at, ",
            $of,
            "updated_at, ",
            $of,
            "rev"
        )
    };
}
pub(super) use redirection_columns;
