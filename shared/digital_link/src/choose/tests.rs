use proptest::prelude::*;
use shared::digital_link::SerialMode;

use super::*;

/// A link as `type title [media type] [languages] [contexts]`; a `-` is none, and a type that ends with `!` is the default.
fn link(text: &str) -> TypedLink {
    let mut parts = text.split(' ').map(|part| if part == "-" { "" } else { part });
    let mut list = || -> Vec<&str> {
        parts.next().unwrap_or_default().split(',').filter(|part| !part.is_empty()).collect()
    };
    let (link_type, title, media_type) = (list()[0], list()[0], list());
    TypedLink {
        link_type: link_type.trim_end_matches('!').into(),
        href: format!("https://example.com/{title}").into(),
        title: title.into(),
        media_type: media_type.first().map(|&media_type| media_type.into()),
        hreflang: list().into_iter().map(Into::into).collect(),
        context: list().into_iter().map(Into::into).collect(),
        from: None,
        to: None,
        default: link_type.ends_with('!'),
    }
}

fn set(links: &[&str]) -> LinkSet {
    let links = links.iter().map(|text| link(text)).collect();
    LinkSet { description: "An item".into(), serial_mode: SerialMode::None, links }
}

/// The titles that are left: one means a redirect, more a choice.
fn chosen(set: &LinkSet, query: &str, accept: &str, language: &str) -> String {
    let header = |text: &'static str| Some(text.as_bytes()).filter(|text| !text.is_empty());
    let leak = |text: &str| -> &'static str { text.to_owned().leak() };
    let wanted = Wanted::read(Some(query), header(leak(accept)), header(leak(language)));
    match choose(set, &wanted, UnixMillis(0)) {
        Choice::Nothing => String::new(),
        Choice::One(link, _) => link.title.to_string(),
        Choice::Several(links) => links.iter().map(|link| &*link.title).collect::<Vec<_>>().join("|"),
    }
}

#[test]
fn links_are_chosen_by_type_media_type_language_and_context() {
    let page = "text/html,application/xhtml+xml,*/*;q=0.8";
    let all = set(&[
        "gs1:pip! en text/html en",
        "gs1:pip fr text/html fr",
        "gs1:pip br text/html pt-BR",
        "gs1:pip json application/json",
        "gs1:instructions one - de",
        "gs1:instructions two - fr",
        "gs1:certificationInfo c0 text/html",
        "gs1:certificationInfo c1 text/html fr",
        "gs1:certificationInfo c2 text/html",
        "gs1:certificationInfo c3 application/pdf",
        "gs1:certificationInfo c4 application/pdf en",
        "gs1:certificationInfo c5 application/pdf en LK",
        "https://example.org/voc/x own",
    ]);
    for (query, accept, language, expected, why) in [
        ("", "", "", "en", "the default"),
        ("", "*/*", "", "en", "the default"),
        ("", page, "ja", "en", "a language without a link"),
        ("", page, "fr-CH,en;q=0.5", "fr", "an alike link in the visitor's language"),
        ("", page, "en;q=0.5,fr;q=0.9", "fr", "by quality"),
        ("", page, "pt-PT,pt;q=0.9", "br", "a tag below the language"),
        ("linkType=gs1:pip", page, "pt-br", "br", "tags have no case"),
        (
            "linkType=gs1:pip",
            page,
            "fr;q=0",
            "en",
            "what is refused is not chosen, and the default breaks the tie",
        ),
        ("linkType=gs1:pip", "application/json", "fr", "json", "the media type comes before the language"),
        ("linkType=gs1:pip", "image/png", "fr", "fr", "nothing is accepted: all stay"),
        ("linkType=https://gs1.org/voc/instructions", page, "fr", "two", "another namespace"),
        ("linkType=gs1:instructions", page, "ja", "one|two", "none fits better"),
        ("linkType=gs1:instructions", "undefined", "", "one|two", "no range in Accept"),
        ("linkType=gs1:certificationInfo", "text/html", "", "c0|c2", "without a language first"),
        ("linkType=gs1:certificationInfo", "text/html", "fr", "c1", "by language"),
        ("linkType=gs1:certificationInfo", "application/pdf", "", "c3", "without a language first"),
        ("linkType=gs1:certificationInfo", "application/pdf", "en", "c4", "without a context first"),
        ("linkType=gs1:certificationInfo&context=lk", "application/pdf", "en", "c5", "by context"),
        ("linkType=gs1:certificationInfo&context=FR", "application/pdf", "en", "c4", "of no context"),
        ("linkType=https://example.org/voc/x", "", "", "own", "a type of another vocabulary"),
        ("linkType=gs1:nosuch", "", "", "", "no link of the type"),
        ("linkType=pip", "", "", "", "no curie"),
    ] {
        assert_eq!(chosen(&all, query, accept, language), expected, "{query} {accept} {language}: {why}");
    }
}

#[test]
fn what_decided_is_named() {
    let all = set(&[
        "gs1:pip! en - en",
        "gs1:pip fr - fr",
        "gs1:pip lk - fr LK",
        "gs1:instructions html text/html",
        "gs1:instructions pdf application/pdf",
        "gs1:epil one",
        "gs1:pip pdf application/pdf fr",
    ]);
    for (query, accept, language, title, expected) in [
        ("", None, None, "en", ChosenBy::Default),
        ("", None, Some("ja"), "en", ChosenBy::Default),
        ("", None, Some("en"), "en", ChosenBy::Language),
        ("", None, Some("fr"), "fr", ChosenBy::Language),
        ("context=LK", None, Some("fr"), "lk", ChosenBy::Context),
        ("linkType=gs1:epil", Some("text/html"), Some("fr"), "one", ChosenBy::LinkType),
        ("linkType=gs1:instructions", Some("application/pdf"), None, "pdf", ChosenBy::MediaType),
        ("linkType=gs1:pip", Some("application/pdf"), Some("en"), "pdf", ChosenBy::MediaType),
        ("linkType=gs1:pip", Some("text/html"), Some("en"), "en", ChosenBy::Language),
        ("linkType=gs1:pip", Some("text/html"), Some("fr"), "fr", ChosenBy::Language),
    ] {
        let header = |text: Option<&'static str>| text.map(str::as_bytes);
        let wanted = Wanted::read(Some(query), header(accept), header(language));
        match choose(&all, &wanted, UnixMillis(0)) {
            Choice::One(link, by) => {
                assert_eq!((&*link.title, by), (title, expected), "{query} {language:?}")
            }
            other => panic!("{query} {language:?}: {other:?}"),
        }
    }
}

proptest! {
    #[test]
    fn the_best_are_kept_in_their_order(ranks in prop::collection::vec(0..4_usize, 0..9)) {
        let titles: Vec<String> = (0..ranks.len()).map(|nth| format!("gs1:pip {nth}")).collect();
        let all = set(&titles.iter().map(String::as_str).collect::<Vec<_>>());
        let rank = |link: &TypedLink| ranks[link.title.parse::<usize>().unwrap()];
        let mut links: Vec<_> = all.links.iter().collect();
        let had_others = keep_best(&mut links, rank);
        let best = ranks.iter().max();
        let expected: Vec<_> = all.links.iter().filter(|link| Some(&rank(link)) == best).collect();
        prop_assert_eq!(had_others, expected.len() < ranks.len());
        prop_assert_eq!(links, expected);
    }
}

#[test]
fn a_link_holds_from_its_start_until_before_its_end() {
    let mut one = set(&["gs1:pip! a"]);
    for (from, to, expected) in
        [(Some(0), Some(1), "a"), (Some(1), None, ""), (None, Some(0), ""), (Some(-1), None, "a")]
    {
        (one.links[0].from, one.links[0].to) = (from, to);
        assert_eq!(chosen(&one, "", "", ""), expected, "{from:?} {to:?}");
        assert_eq!(chosen(&one, "linkType=gs1:pip", "", ""), expected, "{from:?} {to:?}");
    }
}

proptest! {
    #[test]
    fn any_request_leads_to_a_link_of_the_set(
        query in "(linkType=(gs1:pip|linkset|%[0-9a-f]{2})|context=[A-Z]{2}|&|\\PC{0,8}){0,4}",
        accept in "((text|application|\\*)/(html|json|\\*)(;q=[01](\\.[0-9])?)?,?|\\PC){0,4}",
        language in "([a-z]{2}(-[A-Z]{2})?(;q=[01](\\.[0-9])?)?,?|\\*|\\PC){0,4}",
        links in prop::collection::vec("gs1:(pip|x)!? [a-e] (text/html|-) (en|pt-BR|pt|-) (LK|-)", 0..6),
    ) {
        let links: Vec<_> = links.iter().map(String::as_str).collect();
        let set = set(&links);
        let found = chosen(&set, &query, &accept, &language);
        let is_there = |title: &str| set.links.iter().any(|link| &*link.title == title);
        prop_assert!(found.is_empty() || found.split('|').all(is_there), "{found}");
    }
}
