//! Checks an SVG against lists of what it may hold: shapes, gradients and clips, and nothing that loads, runs or links.
//!
//! What is not in the lists is refused, not removed, so that what is stored is what was sent.

const NAMESPACE: &str = "http://www.w3.org/2000/svg";
/// Deepest nesting: drawing programs write some ten.
const MAX_DEPTH: usize = 32;

const ELEMENTS: &[&str] = &[
    "svg",
    "g",
    "defs",
    "title",
    "desc",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "linearGradient",
    "radialGradient",
    "stop",
    "clipPath",
];

/// Those that hold a text.
const TEXTS: [&str; 2] = ["title", "desc"];

const ATTRIBUTES: &[&str] = &[
    "xmlns",
    "version",
    "viewBox",
    "preserveAspectRatio",
    "width",
    "height",
    "id",
    "role",
    "aria-label",
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "cx",
    "cy",
    "r",
    "rx",
    "ry",
    "fx",
    "fy",
    "d",
    "points",
    "pathLength",
    "transform",
    "fill",
    "fill-rule",
    "fill-opacity",
    "stroke",
    "stroke-width",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-opacity",
    "opacity",
    "clip-path",
    "clip-rule",
    "clipPathUnits",
    "color",
    "offset",
    "stop-color",
    "stop-opacity",
    "gradientUnits",
    "gradientTransform",
    "spreadMethod",
];

/// Checks the text of an SVG.
///
/// # Errors
/// The first thing that is not well-formed or not in the lists.
pub(super) fn check(text: &str) -> Result<(), String> {
    if text.chars().any(|letter| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r')) {
        return Err("it has control characters".to_owned());
    }
    let mut rest = declaration(text)?;
    let mut open: Vec<&str> = Vec::new();
    let mut is_begun = false;
    loop {
        let (between, tag) = match rest.split_once('<') {
            Some((between, tag)) => (between, Some(tag)),
            None => (rest, None),
        };
        check_text(between, open.last().copied())?;
        let Some(tag) = tag else { break };
        rest = if let Some(comment) = tag.strip_prefix("!--") {
            let (inside, after) = comment.split_once("-->").ok_or("a comment has no end")?;
            if inside.contains("--") || inside.ends_with('-') {
                return Err("a comment has two hyphens in a row".to_owned());
            }
            after
        } else if let Some(end) = tag.strip_prefix('/') {
            let (name, after) = end.split_once('>').ok_or("an element has no end")?;
            if open.pop() != Some(name.trim_end()) {
                return Err("elements do not end in the order in which they begin".to_owned());
            }
            after
        } else {
            if is_begun && open.is_empty() {
                return Err("it has more than one element at the top".to_owned());
            }
            let begun = Begun::read(tag)?;
            // Each level multiplies what a browser draws: ten levels of ten shapes would stop it.
            if begun.is_clipped && (begun.name == "clipPath" || open.contains(&"clipPath")) {
                return Err("what is in a clipPath, and a clipPath itself, has no clip-path".to_owned());
            }
            if (begun.name == "svg") == is_begun {
                return Err("the element svg must be at the top, and only there".to_owned());
            }
            is_begun = true;
            if open.last().is_some_and(|parent| TEXTS.contains(parent)) {
                return Err("title and desc hold text alone".to_owned());
            }
            if !begun.is_empty {
                open.push(begun.name);
            }
            if open.len() > MAX_DEPTH {
                return Err(format!("its elements are nested more than {MAX_DEPTH} deep"));
            }
            begun.rest
        };
    }
    if is_begun && open.is_empty() { Ok(()) } else { Err("an element has no end".to_owned()) }
}

/// What follows an XML declaration, which may name no other encoding.
fn declaration(text: &str) -> Result<&str, String> {
    let Some(inside) = text.strip_prefix("<?xml ") else { return Ok(text) };
    let (inside, rest) = inside.split_once("?>").ok_or("the XML declaration has no end")?;
    let inside = inside.trim().replace('\'', "\"").to_ascii_lowercase();
    let allowed = ["version=\"1.0\"", "encoding=\"utf-8\"", "standalone=\"no\"", "standalone=\"yes\""];
    if inside.split_ascii_whitespace().all(|part| allowed.contains(&part)) {
        Ok(rest)
    } else {
        Err("its XML declaration says something else than version 1.0 and UTF-8".to_owned())
    }
}

/// A text between tags: blanks, or words of an element that holds some.
fn check_text(text: &str, parent: Option<&str>) -> Result<(), String> {
    if text.chars().all(|letter| matches!(letter, ' ' | '\t' | '\n' | '\r')) {
        return Ok(());
    }
    if !parent.is_some_and(|parent| TEXTS.contains(&parent)) {
        return Err("it has text outside of title and desc".to_owned());
    }
    let known = ["amp;", "lt;", "gt;", "quot;", "apos;"];
    if text.split('&').skip(1).any(|after| !known.iter().any(|name| after.starts_with(name))) {
        return Err("it has an entity that is not one of XML".to_owned());
    }
    if text.contains("]]>") { Err("it has a stray ]]>".to_owned()) } else { Ok(()) }
}

/// The tag that begins an element.
struct Begun<'a> {
    name: &'a str,
    /// Whether it ends with the same tag.
    is_empty: bool,
    /// Whether it has the attribute `clip-path`.
    is_clipped: bool,
    /// What follows it.
    rest: &'a str,
}

impl<'a> Begun<'a> {
    /// Reads a tag from behind its `<`.
    fn read(tag: &'a str) -> Result<Self, String> {
        let end = tag.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(tag.len());
        let (name, mut rest) = tag.split_at(end);
        if !ELEMENTS.contains(&name) {
            let shown: String = tag.chars().take(20).collect();
            return Err(format!("it may hold {} only, and not <{shown}", ELEMENTS.join(", ")));
        }
        let mut seen: Vec<&str> = Vec::new();
        loop {
            let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
            if let Some(after) = trimmed.strip_prefix('>') {
                rest = after;
                break;
            }
            if let Some(after) = trimmed.strip_prefix("/>") {
                return Self { name, is_empty: true, is_clipped: false, rest: after }.with(&seen);
            }
            if trimmed.len() == rest.len() {
                return Err(format!("the tag of {name} is not well-formed"));
            }
            let (attribute, after) = attribute(trimmed)?;
            if seen.contains(&attribute) {
                return Err(format!("the attribute {attribute} is there twice"));
            }
            seen.push(attribute);
            rest = after;
        }
        Self { name, is_empty: false, is_clipped: false, rest }.with(&seen)
    }

    /// Only the element at the top names the namespace, and must.
    fn with(self, attributes: &[&str]) -> Result<Self, String> {
        if (self.name == "svg") == attributes.contains(&"xmlns") {
            Ok(Self { is_clipped: attributes.contains(&"clip-path"), ..self })
        } else {
            Err(format!("the element svg, and only that, has xmlns=\"{NAMESPACE}\""))
        }
    }
}

/// Reads `name="value"`: the name, and what follows.
fn attribute(text: &str) -> Result<(&str, &str), String> {
    let end =
        text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if !ATTRIBUTES.contains(&name) {
        let shown: String = text.chars().take(20).collect();
        return Err(format!("the attribute {shown} is not allowed"));
    }
    let no_value = || format!("the attribute {name} has no value in quotes");
    let rest = rest.strip_prefix('=').ok_or_else(no_value)?;
    let quote = rest.chars().next().filter(|letter| matches!(letter, '"' | '\'')).ok_or_else(no_value)?;
    let (value, after) = rest.get(1..).and_then(|rest| rest.split_once(quote)).ok_or_else(no_value)?;
    // `&` and `\` could spell what is not allowed.
    if value.contains(['<', '&', '\\']) {
        return Err(format!("the attribute {name} holds one of < & \\"));
    }
    if name == "xmlns" && value != NAMESPACE {
        return Err(format!("xmlns must be {NAMESPACE}"));
    }
    let takes_functions = matches!(name, "transform" | "gradientTransform" | "aria-label");
    if value.contains('(') && !takes_functions && !is_local(value) && !is_color(value) {
        return Err(format!(
            "the attribute {name} may only refer to a part of the same picture, as url(#id)"
        ));
    }
    Ok((name, after))
}

/// Whether a value is `url(#id)`.
fn is_local(value: &str) -> bool {
    let id = value.strip_prefix("url(#").and_then(|rest| rest.strip_suffix(')'));
    id.is_some_and(|id| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    })
}

/// Whether a value is a colour by its parts, such as `rgb(1, 2, 3)`.
fn is_color(value: &str) -> bool {
    let parts = ["rgb(", "rgba(", "hsl(", "hsla("].iter().find_map(|name| value.trim().strip_prefix(name));
    parts.and_then(|parts| parts.strip_suffix(')')).is_some_and(|parts| {
        parts.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ,.%/-".contains(&byte))
    })
}
