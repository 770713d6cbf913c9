//! nginx with one worker: a `map` of the same links, or one fixed `return`.

use std::{fs, path::Path};

use anyhow::Result;

use super::peers::{NGINX_FIXED, NGINX_MAP, Other, Place, Ports};
use crate::{links::text, scripts::Answers, waymark::free_addresses};

/// Writes configuration and map; nothing is started.
pub(crate) fn prepare(place: &Place<'_>, program: &Path, is_fixed: bool) -> Result<Other> {
    let [plain, h2, tls] = free_addresses()?;
    let (folder, ports) = (
        place.folder.join(if is_fixed { "nginx-fixed" } else { "nginx" }),
        Ports { plain, h2, tls: Some(tls) },
    );
    fs::create_dir_all(&folder)?;
    let body = if is_fixed {
        let target = text(&place.links.target(0));
        format!("  server {{\n{}    location / {{ return 302 \"{target}\"; }}\n  }}\n", listens(place, ports))
    } else {
        place.links.write_map(&folder.join("links.map"), b" \"", b"\";\n")?;
        // The hash has room, so that no bucket is long.
        format!(
            "  map_hash_max_size {};\n  map_hash_bucket_size 256;\n  \
               map $uri $target {{ default \"\"; include links.map; }}\n  server {{\n{}    \
                 location / {{\n      if ($target = \"\") {{ return 404; }}\n      return 302 $target;\n    }}\n  }}\n",
            (place.links.count() * 2).max(2_048),
            listens(place, ports)
        )
    };
    let configuration = folder.join("nginx.conf");
    fs::write(&configuration, format!("{HEAD}{body}}}\n"))?;
    let arguments = ["-p", &folder.to_string_lossy(), "-c", &configuration.to_string_lossy(), "-e", "stderr"];
    Ok(Other {
        name: if is_fixed { NGINX_FIXED } else { NGINX_MAP },
        ports,
        answers: if is_fixed { Answers::Fixed(302) } else { Answers::Link(302) },
        program: program.to_owned(),
        arguments: arguments.map(str::to_owned).to_vec(),
        log: folder.join("nginx.log"),
        has_worker: true,
    })
}

/// Everything that costs and is not asked for is off.
const HEAD: &str = "daemon off;\n\
     worker_processes 1;\n\
     error_log stderr crit;\n\
     pid nginx.pid;\n\
     events { worker_connections 4096; }\n\
     http {\n  \
       access_log off;\n  log_not_found off;\n  server_tokens off;\n  etag off;\n  \
       keepalive_timeout 600s;\n  keepalive_requests 1000000000;\n  \
       client_body_temp_path tmp;\n  proxy_temp_path tmp;\n  fastcgi_temp_path tmp;\n  \
       uwsgi_temp_path tmp;\n  scgi_temp_path tmp;\n";

fn listens(place: &Place<'_>, ports: Ports) -> String {
    let Ports { plain, h2, tls } = ports;
    let tls = tls.map(|tls| {
        let (chain, key) = (place.certificate.chain(), place.certificate.key());
        format!(
            "    listen {tls} ssl reuseport;\n    ssl_certificate {};\n    ssl_certificate_key {};\n    \
             ssl_protocols TLSv1.2 TLSv1.3;\n",
            chain.display(),
            key.display()
        )
    });
    format!(
        "    listen {plain} reuseport;\n    listen {h2} http2 reuseport;\n{}    server_name _;\n",
        tls.unwrap_or_default()
    )
}
