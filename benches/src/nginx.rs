//! The other side: nginx with a `map` of the same links, one worker.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    links::Links,
    process::{self, Server},
    waymark::free_addresses,
};

/// An nginx with its own folder and port.
#[derive(Debug)]
pub(crate) struct Nginx {
    binary: PathBuf,
    folder: PathBuf,
    core: Option<usize>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Nginx {
    /// Writes configuration and map; nothing is started.
    pub(crate) fn new(binary: &Path, folder: &Path, core: Option<usize>, links: &Links) -> Result<Self> {
        let [address] = free_addresses()?;
        let folder = folder.join("nginx");
        fs::create_dir_all(&folder)?;
        links.write_nginx_map(&folder.join("links.map"))?;
        fs::write(folder.join("nginx.conf"), configuration(address, links.known.len()))?;
        Ok(Self { binary: binary.to_owned(), folder, core, address })
    }

    /// Starts it in the foreground; the worker is found once it serves.
    pub(crate) fn spawn(&self) -> Result<Server> {
        let log = File::options().create(true).append(true).open(self.folder.join("nginx.log"))?;
        let mut command = process::command(&self.binary, self.core);
        command
            .arg("-p")
            .arg(&self.folder)
            .arg("-c")
            .arg(self.folder.join("nginx.conf"))
            .args(["-e", "stderr"])
            .stdout(log.try_clone()?)
            .stderr(log);
        Server::spawn(&mut command)
    }

    /// What it wrote last, should it not have started.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read_to_string(self.folder.join("nginx.log")).unwrap_or_default();
        log.lines().last().unwrap_or_default().to_owned()
    }

    /// Makes the worker the process that is measured.
    pub(crate) fn find_worker(server: &mut Server) -> Result<()> {
        server.pid = *process::children(server.pid)?.first().context("nginx has no worker")?;
        Ok(())
    }
}

/// Everything that costs and is not asked for is off; the hash has room, so that no bucket is long.
fn configuration(address: SocketAddr, links: usize) -> String {
    format!(
        "daemon off;\n\
         worker_processes 1;\n\
         error_log stderr crit;\n\
         pid nginx.pid;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  \
           access_log off;\n  log_not_found off;\n  server_tokens off;\n  etag off;\n  \
           keepalive_timeout 600s;\n  keepalive_requests 1000000000;\n  \
           client_body_temp_path tmp;\n  proxy_temp_path tmp;\n  fastcgi_temp_path tmp;\n  \
           uwsgi_temp_path tmp;\n  scgi_temp_path tmp;\n  \
           map_hash_max_size {};\n  map_hash_bucket_size 256;\n  \
           map $uri $target {{ default \"\"; include links.map; }}\n  \
           server {{\n    listen {address} reuseport;\n    server_name _;\n    \
             location / {{\n      if ($target = \"\") {{ return 404; }}\n      return 302 $target;\n    }}\n  }}\n\
         }}\n",
        (links * 2).max(2_048)
    )
}
