//! What requests about short domains are refused for.

use shared::{problem::Code, short_url::Host};

pub use ::kernel::error::{CommonError, DomainError, ServiceError};

/// What a request about a short domain is refused for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what each is")]
pub enum DomainsError {
    #[error("host: {0} is a name of this service.")]
    OwnName(Host),
    #[error("host: the account has {0} already.")]
    Known(Host),
    #[error("host: another account of this service has proven {0} first.")]
    Taken(Host),
    #[error("The account has {most} short domains that are not proven: remove some.")]
    TooManyUnproven { most: u64 },
    #[error("The account has claimed {most} short domains, and can claim no more.")]
    TooManyClaims { most: u64 },
    #[error("{0} was given to the account by whoever runs this service: it needs no proof.")]
    NeedsNoProof(Host),
    #[error("{0} was given to the account by whoever runs this service, who alone takes it away.")]
    GivenByPlatform(Host),
    #[error(
        "{host} has {links} short ids, and {deleted} that were deleted: codes of theirs may be printed, so it stays."
    )]
    HasLinks { host: Host, links: u64, deleted: u64 },
    #[error(
        "{host} has {most} short ids or more, deleted ones among them: codes of theirs may be printed, so it stays."
    )]
    HasManyLinks { host: Host, most: u32 },
    #[error("{0} has links: delete them first, because no link changes its account.")]
    HasLiveLinks(Host),
    #[error("The files of the account's short domains take at most {most} bytes together: remove some.")]
    TooManyFiles { most: i64 },
    #[error(
        "The files of all short domains of this service take at most {most} bytes together, which is used up."
    )]
    NoRoomForFiles { most: i64 },
    #[error("prefixInUrls needs a pathPrefix.")]
    NoPrefix,
    #[error(
        "pathPrefix of {0} stays while prefixInUrls is true: codes with it may be printed. Set prefixInUrls to false first."
    )]
    PrefixInUrls(Host),
    #[error(
        "pathPrefix of {0} stays, because multiSegment is true and it has links: short ids may begin with the other one."
    )]
    PrefixOfSegments(Host),
    #[error("multiSegment of {0} stays true: it has links, and codes with several segments may be printed.")]
    SegmentsStay(Host),
    #[error("{host} was claimed or checked within the last {seconds} seconds; try again later.")]
    CheckedJustNow { host: Host, seconds: i64 },
    #[error("The account has claimed or checked {most} hosts within a minute; try again later.")]
    TooManyChecks { most: i64 },
    #[error("{0} is not proven: it gets a certificate once it is.")]
    NotProven(Host),
    #[error("{0} was given to the account by whoever runs this service, who sees to its certificate.")]
    OtherCertificate(Host),
    #[error("This service orders no certificates: whoever runs it sees to them.")]
    NoCertificates,
    #[error("automaticCertificate of {0} is false: set it to true first.")]
    CertificateOff(Host),
    #[error("A certificate of {host} was asked for within the last {minutes} minutes; try again later.")]
    TriedJustNow { host: Host, minutes: i64 },
    #[error("The account has asked for certificates of {most} hosts within an hour; try again later.")]
    TooManyTries { most: i64 },
}

/// Most short ids of a domain that are counted for the text of a refusal: a domain may have a hundred million.
pub const MAX_COUNTED: u32 = 10_000;

impl DomainsError {
    /// The refusal to remove a domain with links, of which at most [`MAX_COUNTED`] were counted.
    #[must_use]
    pub fn has_links(host: Host, links: u64, deleted: u64) -> Self {
        if links.saturating_add(deleted) < u64::from(MAX_COUNTED) {
            Self::HasLinks { host, links, deleted }
        } else {
            Self::HasManyLinks { host, most: MAX_COUNTED }
        }
    }
}

impl DomainError for DomainsError {
    fn code(&self) -> Code {
        match self {
            Self::OwnName(_) => Code::Invalid,
            Self::Known(_)
            | Self::Taken(_)
            | Self::TooManyUnproven { .. }
            | Self::TooManyClaims { .. }
            | Self::NeedsNoProof(_)
            | Self::GivenByPlatform(_)
            | Self::HasLinks { .. }
            | Self::HasManyLinks { .. }
            | Self::HasLiveLinks(_)
            | Self::TooManyFiles { .. }
            | Self::NoRoomForFiles { .. }
            | Self::NoPrefix
            | Self::PrefixInUrls(_)
            | Self::PrefixOfSegments(_)
            | Self::SegmentsStay(_)
            | Self::NotProven(_)
            | Self::OtherCertificate(_)
            | Self::NoCertificates
            | Self::CertificateOff(_) => Code::Conflict,
            Self::CheckedJustNow { .. }
            | Self::TooManyChecks { .. }
            | Self::TriedJustNow { .. }
            | Self::TooManyTries { .. } => Code::TooManyRequests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_were_cut_short_are_not_told() {
        let told = |links, deleted| {
            DomainsError::has_links("go.example".parse().unwrap(), links, deleted).to_string()
        };
        assert!(told(9_000, 999).starts_with("go.example has 9000 short ids, and 999 that were deleted"));
        for (links, deleted) in [(9_000, 1_000), (10_000, 0), (0, 10_000)] {
            assert!(told(links, deleted).starts_with("go.example has 10000 short ids or more"));
        }
    }
}
