//! HAProxy with one thread and a map file of the same links.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::peers::{HAPROXY, Other, Place, Ports};
use crate::{scripts::Answers, waymark::free_addresses};

/// Writes configuration and map; nothing is started.
pub(crate) fn prepare(place: &Place<'_>, program: &Path) -> Result<Other> {
    let [plain, h2, tls] = free_addresses()?;
    let folder = place.folder.join("haproxy");
    fs::create_dir_all(&folder)?;
    let (map, configuration) = (folder.join("links.map"), folder.join("haproxy.cfg"));
    place.links.write_map(&map, b" ", b"\n")?;
    let bundle = &place.certificate.bundle;
    // The look-up once, into a variable: in the rule and in its condition it would be done twice.
    fs::write(
        &configuration,
        format!(
            "global\n  maxconn 4096\n  nbthread 1\n\
             defaults\n  mode http\n  timeout connect 5s\n  timeout server 600s\n  timeout client 600s\n  \
             timeout http-keep-alive 600s\n\
             frontend links\n  bind {plain}\n  bind {h2} proto h2\n  \
             bind {tls} ssl crt {} alpn h2,http/1.1\n  \
             http-request set-var(txn.target) path,map_str({})\n  \
             http-request redirect location %[var(txn.target)] code 302 if {{ var(txn.target) -m found }}\n  \
             http-request return status 404\n",
            bundle.display(),
            map.display()
        ),
    )?;
    let configuration = configuration.to_str().context("the folder's name is no text")?.to_owned();
    Ok(Other {
        name: HAPROXY,
        ports: Ports { plain, h2, tls: Some(tls) },
        answers: Answers::Link(302),
        program: program.to_owned(),
        arguments: vec!["-db".to_owned(), "-f".to_owned(), configuration],
        log: folder.join("haproxy.log"),
        has_worker: false,
    })
}
