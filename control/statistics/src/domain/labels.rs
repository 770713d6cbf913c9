//! Values of dimensions with few of them: the kind of a device, and its language.

/// Languages of ISO 639-1, and Filipino, which browsers send and which has three letters.
///
/// The list bounds how many rows somebody can make who sends an invented language with each scan.
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de \
    dv dz ee el en eo es et eu fa ff fi fil fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in \
    io is it iu iw ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms \
    mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn \
    so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// A language that is none of ISO 639-1.
pub const OTHER: &str = "other";

/// Longest name of a region or city that is kept, in bytes.
const MAX_NAME: usize = 64;

/// The language of a tag such as `de-CH`, without its region; empty where none was sent.
#[must_use]
pub fn language(tag: Option<&str>) -> String {
    let Some(tag) = tag.filter(|tag| !tag.is_empty()) else { return String::new() };
    let primary = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let is_known = LANGUAGES.split_ascii_whitespace().any(|known| known == primary);
    if is_known { primary } else { OTHER.to_owned() }
}

// Spec gap: kinds of devices are not shown. They follow from the operating system alone, which stays when the rest of a
// user agent is removed, so that scans that are counted later get the same kind.
/// The kind of device of an operating system; empty where the system is unknown.
#[must_use]
pub fn device(system: &str) -> &'static str {
    const PHONES: &[&str] = &["Android", "BlackBerry", "BlackBerry 10", "Firefox OS", "SymbianOS", "Tizen"];
    const DESKTOPS: &[&str] = &["BSD", "ChromeOS", "Linux", "Mac OS Classic", "Mac OSX"];
    match system {
        "" => "",
        "iPad" => "tablet",
        "iPhone" | "iPod" | "iOS" => "phone",
        _ if PHONES.contains(&system) || system.starts_with("Windows Phone") => "phone",
        _ if DESKTOPS.contains(&system) || system.starts_with("Windows") => "desktop",
        _ => OTHER,
    }
}

/// The name of a region or city as it is kept.
#[must_use]
pub fn name(text: Option<&str>) -> String {
    shared::wire::scan::cut(text.unwrap_or_default(), MAX_NAME).to_owned()
}

/// A country code as it is kept: two letters; anything else is unknown.
#[must_use]
pub fn country(code: Option<&str>) -> String {
    let is_code = |code: &&str| code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    code.filter(is_code).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_one_that_exists_or_another() {
        for (tag, expected) in [
            (None, ""),
            (Some(""), ""),
            (Some("de-CH"), "de"),
            (Some("EN"), "en"),
            (Some("zh-Hant-TW"), "zh"),
            (Some("fil-PH"), "fil"),
            (Some("gsw"), "other"),
            (Some("xx"), "other"),
            (Some("d"), "other"),
        ] {
            assert_eq!(language(tag), expected, "{tag:?}");
        }
    }

    #[test]
    fn a_kind_of_device_follows_from_the_system() {
        for (system, expected) in [
            ("", ""),
            ("iPhone", "phone"),
            ("iPad", "tablet"),
            ("Android", "phone"),
            ("Windows Phone OS", "phone"),
            ("Windows 10", "desktop"),
            ("Mac OSX", "desktop"),
            ("Linux", "desktop"),
            ("PlayStation 4", "other"),
        ] {
            assert_eq!(device(system), expected, "{system}");
        }
    }

    #[test]
    fn names_and_codes_are_bounded() {
        assert_eq!(name(Some(&"ä".repeat(40))).len(), 64);
        assert_eq!(
            (name(None), country(Some("DEU")), country(Some("DE"))),
            (String::new(), String::new(), "DE".to_owned())
        );
    }
}
