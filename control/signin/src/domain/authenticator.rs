//! Codes of authenticator apps: TOTP (RFC 6238) with SHA-1, six digits and 30 seconds, which all of them know.

use subtle::ConstantTimeEq;
use totp_rs::{Algorithm, TOTP};
use url::Url;

/// Length of a secret in bytes: that of SHA-1, as RFC 4226 recommends.
pub const SECRET_LEN: usize = 20;

const DIGITS: usize = 6;
const STEP_S: u64 = 30;
/// Time steps by which the clock of a device may differ.
const SKEW: u64 = 1;

/// The name under which apps list the code.
const ISSUER: &str = "Waymark";

/// The step whose code this is, if it is one of now and lies after `last_step`, so that a code works once.
#[must_use]
pub fn matching_step(secret: &[u8; SECRET_LEN], code: &str, last_step: i64, now_ms: i64) -> Option<i64> {
    let totp = totp(secret)?;
    let now = u64::try_from(now_ms).ok()? / 1_000 / STEP_S;
    let steps = now.saturating_sub(SKEW)..=now.saturating_add(SKEW);
    let same = |step: &u64| bool::from(totp.generate(step * STEP_S).as_bytes().ct_eq(code.as_bytes()));
    let found = steps.filter(same).find_map(|step| i64::try_from(step).ok().filter(|step| *step > last_step));
    found.filter(|_| code.len() == DIGITS)
}

/// The secret as people type it: base32.
#[must_use]
pub fn shown(secret: &[u8; SECRET_LEN]) -> Option<String> {
    totp(secret).map(|totp| totp.get_secret_base32())
}

/// What a QR code for apps holds; `email` and `account` say whose code it is.
#[must_use]
pub fn url(secret: &[u8; SECRET_LEN], email: &str, account: &str) -> Option<String> {
    let mut url: Url = "otpauth://totp/".parse().ok()?;
    url.set_path(&format!("/{ISSUER}:{}", format!("{email} ({account})").replace([':', '/', '%'], " ")));
    url.query_pairs_mut().append_pair("secret", &shown(secret)?).append_pair("issuer", ISSUER);
    Some(url.into())
}

fn totp(secret: &[u8; SECRET_LEN]) -> Option<TOTP> {
    TOTP::new(Algorithm::SHA1, DIGITS, 0, STEP_S, secret.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of RFC 6238, appendix B.
    const SECRET: &[u8; SECRET_LEN] = b"12345678901234567890";

    #[test]
    fn codes_are_those_of_the_rfc_and_work_once() {
        for (at_s, code) in [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000_i64, "353130")] {
            let step = at_s / 30;
            for (last, now_s, expected) in [
                (0, at_s, Some(step)),
                (step - 1, at_s + 30, Some(step)),
                (step, at_s, None),
                (step + 1, at_s, None),
                (0, at_s + 60, None),
                (0, at_s - 60, None),
            ] {
                assert_eq!(matching_step(SECRET, code, last, now_s * 1_000), expected, "{code} {now_s}");
            }
        }
        for wrong in ["", "28708", "2870820", "287083", " 87082"] {
            assert_eq!(matching_step(SECRET, wrong, 0, 59_000), None, "{wrong}");
        }
    }

    #[test]
    fn apps_read_the_url() {
        assert_eq!(shown(SECRET).as_deref(), Some("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"));
        let url = url(SECRET, "ada@example.com", "Acme: a/b?").unwrap();
        assert_eq!(
            url,
            "otpauth://totp/Waymark:ada@example.com%20(Acme%20%20a%20b%3F)\
             ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Waymark"
        );
    }
}
