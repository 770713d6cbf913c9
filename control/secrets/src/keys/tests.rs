use proptest::prelude::*;

use super::*;

fn keys(bytes: &[u8]) -> SecretKeys {
    let lines: Vec<String> = bytes.iter().map(|byte| line_of(&[*byte; 32])).collect();
    SecretKeys::parse(&lines.join("\n")).unwrap()
}

#[test]
fn a_text_of_keys_is_read_line_by_line() {
    let (one, two) = (line_of(&[1; 32]), line_of(&[2; 32]));
    for (text, expected) in [
        (String::new(), Err(InvalidKeys::Empty)),
        ("\n \n".to_owned(), Err(InvalidKeys::Empty)),
        (one.clone(), Ok(1)),
        (one.to_uppercase(), Ok(1)),
        (format!("{one}\r\n\n{two}\n"), Ok(2)),
        (one[1..].to_owned(), Err(InvalidKeys::Line(1))),
        (format!("{one}0"), Err(InvalidKeys::Line(1))),
        (format!("{one}\n\n{two}{one}"), Err(InvalidKeys::Line(3))),
        (format!("{one}\n# old\n{two}"), Err(InvalidKeys::Line(2))),
        (one.replacen('0', "g", 1), Err(InvalidKeys::Line(1))),
        // As many bytes as a key has, but fewer digits.
        (format!("{}é", &one[2..]), Err(InvalidKeys::Line(1))),
    ] {
        let found = SecretKeys::parse(&text).map(|keys| keys.ids().count());
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn a_value_decrypts_under_its_name_with_its_key_only() {
    let sealed = keys(&[1]).seal("api-key", &[7; 32], [3; 12]).unwrap();
    assert_eq!(sealed.len(), 65, "a release before would read 32 bytes");
    assert_eq!(key_of(&sealed), Some(keys(&[1]).current()));
    let id = keys(&[1]).current();
    for (held, name, expected) in [
        (&[1][..], "api-key", Ok(vec![7; 32])),
        (&[2, 1], "api-key", Ok(vec![7; 32])),
        (&[1], "webhook", Err(OpenError::Invalid)),
        (&[2], "api-key", Err(OpenError::MissingKey(id))),
    ] {
        assert_eq!(keys(held).open(name, &sealed), expected, "{held:?} {name}");
    }
}

#[test]
fn the_first_key_encrypts() {
    let sealed = keys(&[2, 1]).seal("x", b"", [0; 12]).unwrap();
    assert_eq!(key_of(&sealed), Some(keys(&[2]).current()));
    assert_ne!(keys(&[2]).current(), keys(&[1]).current());
}

#[test]
fn debug_shows_no_key() {
    let shown = format!("{:?}", keys(&[0xab, 0xcd]));
    assert_eq!(shown, format!("[{}, {}]", keys(&[0xab]).current(), keys(&[0xcd]).current()));
    assert!(!shown.contains("abab"), "{shown}");
}

proptest! {
    #[test]
    fn what_is_changed_anywhere_does_not_decrypt(value: Vec<u8>, nonce: [u8; 12], at: usize, bit in 0_u32..8) {
        let keys = keys(&[1]);
        let mut sealed = keys.seal("name", &value, nonce).unwrap();
        prop_assert_eq!(keys.open("name", &sealed), Ok(value));
        let at = at % sealed.len();
        sealed[at] ^= 1_u8 << bit;
        prop_assert!(keys.open("name", &sealed).is_err());
    }

    #[test]
    fn foreign_bytes_do_not_panic(bytes: Vec<u8>, text: String) {
        prop_assert!(keys(&[1]).open("name", &bytes).is_err());
        prop_assert!(open_with(&[1; 32], "name", &bytes).is_none());
        let _ = SecretKeys::parse(&text);
    }
}
