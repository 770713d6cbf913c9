//! What replicas call to each other.

/// What replicas call to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Somebody waits: publish acknowledgements immediately.
    Wait,
    /// Leases were written that somebody may wait for.
    Told,
    /// An edge connected: it may have been elsewhere.
    Edge,
    /// Something was committed.
    Log,
    /// Calls may have been missed.
    Gap,
}

impl Call {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Told => "told",
            Self::Edge => "edge",
            Self::Log => "log",
            Self::Gap => "gap",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Wait, Self::Told, Self::Edge, Self::Log].into_iter().find(|call| call.as_str() == text)
    }
}
