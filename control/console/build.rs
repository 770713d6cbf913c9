//! Embeds what `control/console/build` made of the console, in each of its encodings; without it, nothing.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("dist");
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-changed=build.rs");
    let site = root.join("site");
    let mut found = Vec::new();
    if site.is_dir() {
        list(&site, &site, &mut found)?;
    }
    found.sort();
    let mut code = String::from("&[\n");
    for name in found.iter().filter(|name| !name.ends_with(".br") && !name.ends_with(".gz")) {
        let bytes = |ending: &str| {
            let encoded = format!("{name}{ending}");
            match found.contains(&encoded) {
                true => format!("Some(include_bytes!({:?}))", site.join(encoded)),
                false => "None".to_owned(),
            }
        };
        let plain = site.join(name);
        let (brotli, gzip) = (bytes(".br"), bytes(".gz"));
        let _ = writeln!(
            code,
            "File {{ name: {name:?}, plain: include_bytes!({plain:?}), brotli: {brotli}, gzip: {gzip} }},"
        );
    }
    code.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("files.rs"), code)
}

/// The files of a folder and of those in it, by their paths from `root`.
fn list(root: &Path, folder: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, found)?;
        } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            found.push(name.to_owned());
        }
    }
    Ok(())
}
