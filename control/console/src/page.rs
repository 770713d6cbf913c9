//! The page of the console, and the one in its place where it was not built.

/// What a server shows whose binary has no console.
pub(crate) const NOT_BUILT: &str = include_str!("not_built.html");

/// A page with a `<base>` that leads from `path`, below `/console/`, to `/console/`.
///
/// It must stand before everything that names a file. It is relative: only the browser knows which prefix a proxy took away.
/// Its mark `data-session` says that the browser sent a session, and `data-provider` that the server has a provider of
/// identities.
pub(crate) fn with_base(html: &str, path: &str, has_session: bool, has_provider: bool) -> String {
    let depth = path.matches('/').count();
    let base = if depth == 0 { "./".to_owned() } else { "../".repeat(depth) };
    with_base_at(html, &base, has_session, has_provider)
}

/// The same with a `<base>` that is known.
pub(crate) fn with_base_at(html: &str, base: &str, has_session: bool, has_provider: bool) -> String {
    let session = if has_session { " data-session" } else { "" };
    let provider = if has_provider { " data-provider" } else { "" };
    html.replacen("<head>", &format!("<head><base href=\"{base}\"{session}{provider}>"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_leads_to_the_root_of_the_console() {
        for (path, base) in [
            ("", "./"),
            ("links", "./"),
            ("links/", "../"),
            ("links/tn.gg/K7Q2", "../../"),
            ("items/\"><script>", "../"),
        ] {
            let page = with_base("<html><head><title>x</title></head></html>", path, false, false);
            assert_eq!(page, format!("<html><head><base href=\"{base}\"><title>x</title></head></html>"));
        }
        assert_eq!(with_base("<head>", "", true, false), "<head><base href=\"./\" data-session>");
        assert_eq!(with_base("<head>", "", false, true), "<head><base href=\"./\" data-provider>");
    }
}
