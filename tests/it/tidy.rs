//! Architecture rules that the compiler does not check: dependencies between modules, SQL, file sizes, clocks.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Most lines of a source file.
const MAX_LINES: usize = 400;

/// Most lines of the sources of one crate, comments and the tests in it included.
const MAX_CRATE_LINES: usize = 11_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn sources(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if !path.ends_with("target") && !path.ends_with("node_modules") {
                    walk(&path, found);
                }
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    assert!(!found.is_empty(), "{folder} holds no sources");
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), text)
        })
        .collect()
}

/// The sources of the control plane: `control` itself and its crates.
fn control() -> Vec<String> {
    let crates = fs::read_dir(root().join("control")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut found: Vec<String> = crates
        .filter(|folder| folder.is_dir())
        .chain([root().join("control/src")])
        .map(|folder| folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    found
}

/// Fails with every line of a layer of the control plane that holds one of `words`.
fn forbid_in_layer(layer: &str, words: &[&str], why: &str) {
    let folders: Vec<String> = control()
        .into_iter()
        .map(|source| format!("{source}/{layer}"))
        .filter(|folder| root().join(folder).is_dir())
        .collect();
    assert!(!folders.is_empty(), "no crate has the layer {layer}");
    for folder in folders {
        forbid(&folder, words, why);
    }
}

/// Lines of code without tests, comments and docs, numbered from 1.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    text[..end]
        .lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Fails with every line of `folder` that holds one of `words`.
fn forbid(folder: &str, words: &[&str], why: &str) {
    let mut seen = Vec::new();
    for (path, text) in sources(folder) {
        for (number, line) in code(&text) {
            if words.iter().any(|word| line.contains(word)) {
                seen.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(seen.is_empty(), "{why}:\n{}", seen.join("\n"));
}

#[test]
fn shared_is_pure() {
    let words = [
        "edge::",
        "control::",
        "tokio::",
        "std::fs",
        "std::net::Tcp",
        "sqlx",
        "SystemTime",
        "Instant::now",
        "getrandom",
    ];
    forbid("shared/src", &words, "shared is pure");
    forbid("shared/qr/src", &words, "qr is pure");
    forbid("shared/print/src", &words, "print is pure");
    forbid("shared/digital_link/src", &words, "digital_link is pure");
}

#[test]
fn edge_depends_on_neither_control_nor_sql() {
    for folder in [
        "edge/src",
        "edge/backing/src",
        "edge/replica/src",
        "edge/scans/src",
        "edge/scan_limits/src",
        "edge/tls/src",
        "edge/visitor_pages/src",
        "edge/resolver/src",
    ] {
        forbid(folder, &["control::", "axum", "sqlx"], "edge depends on shared only");
    }
}

#[test]
fn control_knows_no_edge() {
    for folder in control() {
        forbid(&folder, &["edge::", "moka"], "control depends on shared only");
    }
}

#[test]
fn domain_is_pure() {
    let words = [
        "crate::store",
        "crate::service",
        "crate::http",
        "crate::worker",
        "sqlx",
        "axum",
        "tokio",
        "SystemTime",
        "Instant::now",
        "getrandom",
        "std::fs",
    ];
    forbid_in_layer("domain", &words, "domain depends on shared only");
}

#[test]
fn a_layer_does_not_look_up() {
    let above_store = ["crate::service", "crate::http", "crate::worker", "axum"];
    forbid_in_layer("store", &above_store, "store sees domain only");
    forbid_in_layer("service", &["crate::http", "crate::worker", "axum"], "service does not know HTTP");
    forbid_in_layer("worker", &["crate::http", "axum"], "workers do not know HTTP");
}

#[test]
fn sql_is_only_in_the_store() {
    let statements = [
        "\"SELECT ",
        "\"INSERT INTO ",
        "\"UPDATE ",
        "\"DELETE FROM ",
        "sqlx::query",
        "execute!(",
        "fetch_one!(",
        "fetch_optional!(",
        "fetch_all!(",
    ];
    let folders = control().into_iter().chain(["deploy/standalone/src".to_owned()]);
    for (path, text) in folders.flat_map(|folder| sources(&folder)) {
        if path.starts_with("control/") && path.contains("/src/store/") {
            continue;
        }
        for (number, line) in code(&text) {
            assert!(
                !statements.iter().any(|s| line.contains(s)),
                "{path}:{number}: SQL outside of the store: {line}"
            );
        }
    }
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<String> = ["shared", "edge", "control", "deploy", "tests", "benches"]
        .into_iter()
        .flat_map(sources)
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path} ({lines})"))
        .collect();
    assert!(long.is_empty(), "files over {MAX_LINES} lines: {}", long.join(", "));
}

#[test]
fn no_crate_is_too_large() {
    let mut crates = control();
    for part in ["shared", "edge", "deploy", "tests", "benches"] {
        let nested = fs::read_dir(root().join(part)).unwrap().map(|entry| entry.unwrap().path().join("src"));
        let found = nested.chain([root().join(part).join("src")]).filter(|folder| folder.is_dir());
        crates.extend(found.map(|folder| folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()));
    }
    let large: Vec<String> = crates
        .into_iter()
        .map(|folder| {
            let lines: usize = sources(&folder).iter().map(|(_, text)| text.lines().count()).sum();
            (folder, lines)
        })
        .filter(|(_, lines)| *lines > MAX_CRATE_LINES)
        .map(|(folder, lines)| format!("{folder} ({lines})"))
        .collect();
    assert!(large.is_empty(), "crates over {MAX_CRATE_LINES} lines: {}", large.join(", "));
}

#[test]
fn no_unfinished_code_is_marked() {
    // Assembled, so that this file does not hold the words itself.
    let words = [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["#[ig", "nore"].concat(),
        ["unimpl", "emented!"].concat(),
    ];
    for folder in ["shared", "edge", "control", "deploy", "tests", "benches"] {
        for (path, text) in sources(folder) {
            for (number, line) in text.lines().enumerate() {
                assert!(
                    !words.iter().any(|word| line.contains(word.as_str())),
                    "{path}:{}: {line}",
                    number + 1
                );
            }
        }
    }
}

#[test]
fn both_engines_have_the_same_migrations() {
    let names = |engine: &str| {
        let mut names: Vec<String> = fs::read_dir(root().join("control/kernel/migrations").join(engine))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("sqlite"), names("postgres"));
}
