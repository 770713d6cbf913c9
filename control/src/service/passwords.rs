//! Hashing of passwords on a few threads of their own, since each takes a core and 19 MiB.

use std::sync::Arc;

use shared::problem::Code;
use tokio::sync::Semaphore;

use crate::{
    domain::password::{self, HashFailed, Password, SALT_LEN},
    error::ServiceError,
};

/// Passwords that are hashed at once: more would take the cores that redirects need.
const RUNNING: usize = 2;
/// Passwords that are hashed or wait for it: at some 20 ms each, a second's work for [`RUNNING`].
const WAITING: usize = 100;

/// A bounded pool that hashes passwords.
#[derive(Debug)]
pub struct Passwords {
    running: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { running: Arc::new(Semaphore::new(RUNNING)), waiting: Semaphore::new(WAITING) }
    }
}

impl Passwords {
    /// How a password is stored.
    ///
    /// # Errors
    /// [`Code::TooManyRequests`] when too many wait.
    pub async fn hash(&self, password: Password, salt: [u8; SALT_LEN]) -> Result<String, ServiceError> {
        self.run(move || password::hash(&password, &salt)).await
    }

    /// Whether a password is the stored one; takes as long when none is stored.
    ///
    /// # Errors
    /// [`Code::TooManyRequests`] when too many wait.
    pub async fn verify(&self, password: Password, stored: Option<String>) -> Result<bool, ServiceError> {
        self.run(move || password::verify(&password, stored.as_deref())).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HashFailed> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(ServiceError::refused(Code::TooManyRequests, "Too many logins at once."));
        };
        let closed = |_| ServiceError::Internal("the pool of passwords is closed".to_owned());
        let permit = self.running.clone().acquire_owned().await.map_err(closed)?;
        // The permit goes with the work: a caller that hangs up does not make room for more.
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        let failed = |error: String| ServiceError::Internal(error);
        done.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_no_place_is_told_at_once() {
        let pool = Passwords { running: Arc::new(Semaphore::new(0)), waiting: Semaphore::new(1) };
        let mut first = std::pin::pin!(pool.run(|| Ok(())));
        assert!(futures_util::poll!(&mut first).is_pending());
        let second = pool.run(|| Ok(())).await;
        assert_eq!(second.unwrap_err().code(), Code::TooManyRequests);
        pool.running.add_permits(1);
        assert!(first.await.is_ok());
        assert!(pool.run(|| Ok(())).await.is_ok());
    }
}
