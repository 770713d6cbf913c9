//! Password hashing on a few dedicated threads, because each hash takes a core and 19 MiB.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::capacity::Place;
use crate::{
    domain::password::{self, HashFailed, Password, SALT_LEN},
    error::{ServiceError, TenantsError},
};

/// Passwords hashed concurrently: more would take the cores that redirects need.
const RUNNING: usize = 2;

/// A bounded pool that hashes passwords.
#[derive(Debug, Clone)]
pub struct Passwords {
    running: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { running: Arc::new(Semaphore::new(RUNNING)) }
    }
}

impl Passwords {
    /// How a password is stored.
    ///
    /// # Errors
    /// The system's own fault.
    pub async fn hash(
        &self,
        _place: Place,
        password: Password,
        salt: [u8; SALT_LEN],
    ) -> Result<String, ServiceError> {
        self.run(move || password::hash(&password, &salt)).await
    }

    /// How a new password is stored; `about` is what others know of its owner.
    ///
    /// # Errors
    /// The password is guessed with few tries; the fault names `member`.
    pub async fn hash_new(
        &self,
        _place: Place,
        member: &'static str,
        password: Password,
        salt: [u8; SALT_LEN],
        about: Vec<String>,
    ) -> Result<String, ServiceError> {
        let hashed = self.run(move || {
            let about: Vec<&str> = about.iter().map(String::as_str).collect();
            if password.is_guessable(&about) {
                return Ok(None);
            }
            password::hash(&password, &salt).map(Some)
        });
        hashed.await?.ok_or_else(|| TenantsError::CommonPassword { member }.into())
    }

    /// Whether a password is the stored one; takes as long when none is stored.
    ///
    /// # Errors
    /// The system's own fault.
    pub async fn verify(
        &self,
        _place: Place,
        password: Password,
        stored: Option<String>,
    ) -> Result<bool, ServiceError> {
        self.run(move || password::verify(&password, stored.as_deref())).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, HashFailed> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let closed = |_| ServiceError::Internal("the pool of passwords is closed".to_owned());
        let permit = self.running.clone().acquire_owned().await.map_err(closed)?;
        // The permit moves into the task: a caller that hangs up does not free its slot early.
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        let failed = |error: String| ServiceError::Internal(error);
        done.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }
}
