//! Recovery codes: they stand for a code of the authenticator that is lost, each once.

/// How many an operator gets.
pub const COUNT: usize = 10;

/// Random bytes of a code: 80 bits, so that a keyed hash is enough.
pub const RANDOM_LEN: usize = 10;

/// Letters of a code; without those that look like digits.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// Characters of a code without its hyphens.
const LEN: usize = RANDOM_LEN * 8 / 5;

/// A code as it is shown: `abcd-efgh-jkmn-pqrs`.
#[must_use]
pub fn from_random(random: &[u8; RANDOM_LEN]) -> String {
    let letter = |at: usize| {
        let bits = (0..5)
            .map(|bit| at * 5 + bit)
            .fold(0, |value, bit| value << 1 | usize::from(random[bit / 8] >> (7 - bit % 8) & 1));
        char::from(LETTERS[bits])
    };
    let groups = (0..LEN / 4).map(|group| (0..4).map(|at| letter(group * 4 + at)).collect::<String>());
    groups.collect::<Vec<_>>().join("-")
}

/// How a code of an operator is stored: case, hyphens and spaces do not count.
#[must_use]
pub fn hash(secret: &[u8; 32], operator: &str, code: &str) -> [u8; 32] {
    let secret = blake3::derive_key("waymark 2026-11 recovery codes", secret);
    let plain = code.chars().filter(|c| !c.is_whitespace() && *c != '-').collect::<String>().to_lowercase();
    let mut hasher = blake3::Hasher::new_keyed(&secret);
    for part in [operator, &plain] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_write_them() {
        let code = from_random(&[0, 1, 2, 3, 4, 250, 251, 252, 253, 254]);
        assert_eq!(code.len(), 19);
        assert!(code.split('-').all(|group| group.len() == 4), "{code}");
        assert_eq!(from_random(&[0; RANDOM_LEN]), "aaaa-aaaa-aaaa-aaaa");
        assert_eq!(from_random(&[255; RANDOM_LEN]), "9999-9999-9999-9999");
        let stored = hash(&[1; 32], "o", &code);
        for text in [code.replace('-', ""), code.to_uppercase(), format!(" {} ", code.replace('-', " "))] {
            assert_eq!(hash(&[1; 32], "o", &text), stored, "{text}");
        }
        assert_ne!(hash(&[2; 32], "o", &code), stored);
        assert_ne!(hash(&[1; 32], "p", &code), stored);
    }
}
