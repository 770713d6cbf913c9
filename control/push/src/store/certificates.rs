//! Certificates of short domains and challenges of authorities, as edges get them: those of all accounts.

use shared::wire::certificates::{Challenge, DomainCertificate};

use super::{Conn, StoreError, fetch_all};

const LIST: &str = "SELECT host, chain, sealed_key, not_after FROM domain_certificates WHERE chain IS NOT NULL \
    AND sealed_key IS NOT NULL AND not_after IS NOT NULL ORDER BY host";
const CHALLENGES: &str = "SELECT host, token, key_authorization FROM domain_certificates \
    WHERE token IS NOT NULL AND key_authorization IS NOT NULL ORDER BY host";

/// Every certificate, with its key as it is stored.
pub async fn list_all(conn: &mut Conn) -> Result<Vec<DomainCertificate>, StoreError> {
    let rows: Vec<(String, String, String, i64)> = fetch_all!(conn, LIST)?;
    let certificate = |(host, chain, key, not_after): (String, String, String, i64)| DomainCertificate {
        host: host.into(),
        chain: chain.into(),
        key: key.into(),
        not_after,
    };
    Ok(rows.into_iter().map(certificate).collect())
}

/// What authorities are about to check.
pub async fn list_challenges(conn: &mut Conn) -> Result<Vec<Challenge>, StoreError> {
    let rows: Vec<(String, String, String)> = fetch_all!(conn, CHALLENGES)?;
    let challenge = |(host, token, authorization): (String, String, String)| Challenge {
        host: host.into(),
        token: token.into(),
        key_authorization: authorization.into(),
    };
    Ok(rows.into_iter().map(challenge).collect())
}
