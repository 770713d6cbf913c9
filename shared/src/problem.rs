//! The error body that every part of the product returns, and the table of its codes.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $status:literal, $text:literal;)*) => {
        /// Stable numbers of the kinds of error, each with its status and one fixed sentence.
        ///
        /// Clients may rely on the numbers; the sentences in `errors` may change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The HTTP status that goes with the code.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// One sentence about the code, for the docs and as the text of 5xx answers.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// Members or parameters are missing or wrong.
    Invalid = 40001, 400, "The request has missing or wrong members.";
    /// The body is not JSON.
    MalformedJson = 40002, 400, "The body is not well-formed JSON.";
    /// A query parameter is out of its range.
    InvalidParameter = 40003, 400, "A query parameter is out of its range.";
    /// The page token was not made by this service for this query.
    InvalidPageToken = 40004, 400, "The page token does not belong to this query.";
    /// No API key was sent.
    KeyMissing = 40101, 401, "No API key was sent.";
    /// The API key is not known.
    KeyUnknown = 40102, 401, "The API key is not known.";
    /// E-mail address and password do not fit.
    LoginFailed = 40103, 401, "The e-mail address or the password is wrong.";
    /// The key was valid until it expired.
    KeyExpired = 40104, 401, "The API key has expired.";
    /// The password is right, and the second factor is missing or wrong.
    SecondFactor = 40105, 401, "The password is right; a valid code of the second factor is needed, too.";
    /// The key is known but may not do this.
    Forbidden = 40301, 403, "The API key may not do this.";
    /// The key is bound to networks, and the client is in none of them.
    ForeignNetwork = 40302, 403, "The API key may not be used from this network.";
    /// The account is suspended by the platform operator.
    Suspended = 40303, 403, "The account is suspended.";
    /// The account holds as much as the platform operator lets it.
    QuotaUsedUp = 40304, 403, "A quota of the account is used up.";
    /// The item of the code may be a copy, and its account wants nobody to be led on.
    SuspectedCopy = 40305, 403, "The item with this code may be a copy.";
    /// The resource does not exist in this account.
    NotFound = 40401, 404, "The resource was not found.";
    /// No operation has this path.
    NoSuchPath = 40402, 404, "No operation has this path.";
    /// The short id is not known.
    ShortIdUnknown = 40403, 404, "The short id was not found.";
    /// The time window of the link is still to come.
    LinkScheduled = 40404, 404, "The link does not lead anywhere yet.";
    /// The link is paused.
    LinkPaused = 40405, 404, "The link is paused.";
    /// The path exists, the method does not.
    MethodNotAllowed = 40501, 405, "The method is not allowed here.";
    /// The request conflicts with what is stored.
    Conflict = 40901, 409, "The request conflicts with what is stored.";
    /// The short id is taken.
    ShortIdTaken = 40902, 409, "The short id is taken on this domain.";
    /// The idempotency key was used for another request.
    IdempotencyMismatch = 40903, 409, "The Idempotency-Key was used for another request.";
    /// Users cannot be named, because no mail is sent.
    NoMail = 40904, 409, "This server sends no mail.";
    /// The time window of the link is over.
    LinkEnded = 41001, 410, "The link has ended.";
    /// `If-Match` names another state than the one that is stored.
    ChangedMeanwhile = 41201, 412, "It was changed since it was read.";
    /// The body is larger than allowed.
    TooLarge = 41301, 413, "The body is larger than allowed.";
    /// The body is not of a type the operation takes.
    UnsupportedMediaType = 41501, 415, "The body must be application/json.";
    /// The range begins behind the end of the file.
    RangeUnsatisfiable = 41601, 416, "The file has no bytes in this range.";
    /// The host is not one of the short domains.
    MisdirectedHost = 42101, 421, "This host is not served here.";
    /// The code cannot be rendered as asked.
    CannotRender = 42201, 422, "The code cannot be rendered as asked.";
    /// Too many requests.
    TooManyRequests = 42901, 429, "Too many requests.";
    /// The account did as much today as the platform operator lets it.
    DailyQuotaUsedUp = 42902, 429, "A quota of the account for the day is used up.";
    /// The account has as much open as the platform operator lets it.
    OpenQuotaUsedUp = 42903, 429, "The account has as much open at once as its quota allows.";
    /// The platform operator took the link down.
    TakenDown = 45101, 451, "The link was taken down by whoever runs this service.";
    /// The service failed.
    Internal = 50001, 500, "The service failed; the request id names the entry in its log.";
    /// The service cannot answer now.
    Unavailable = 50301, 503, "The service cannot answer now.";
    /// An operation took longer than allowed.
    Timeout = 50302, 503, "The operation took longer than allowed.";
    /// The control plane cannot be reached from the edge.
    ControlUnreachable = 50303, 503, "The control plane did not answer.";
}

// Spec gap: the platform API does not show shape, codes and failure statuses of errors.
/// The error body, the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// Every fault found, each naming its member or parameter; never empty.
    pub errors: Vec<String>,
    /// A number of [`Code`].
    pub code: u32,
    /// Where the code is explained.
    pub more_info: String,
}

impl Problem {
    /// The body for `code` with the faults found; without any, the code's own sentence.
    ///
    /// `docs_url` is the address of the docs page without a fragment.
    #[must_use]
    pub fn new(code: Code, errors: Vec<String>, docs_url: &str) -> Self {
        let errors = if errors.is_empty() { vec![code.text().to_owned()] } else { errors };
        let number = code as u32;
        Self { status: code.status(), errors, code: number, more_info: format!("{docs_url}#error-{number}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_begins_with_its_status() {
        for code in Code::ALL {
            assert_eq!(*code as u32 / 100, u32::from(code.status()), "{code:?}");
        }
    }

    #[test]
    fn errors_are_never_empty() {
        let problem = Problem::new(Code::Internal, vec![], "https://api.example/docs");
        assert_eq!(problem.errors, [Code::Internal.text()]);
        assert_eq!(problem.more_info, "https://api.example/docs#error-50001");
    }
}
