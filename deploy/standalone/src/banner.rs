//! What `waymark up` says when it is up: plain to a pipe, friendly to a terminal.

use std::io::{self, Write};

use shared::short_url::ShortDomain;

use crate::{
    config::Config,
    up::{Running, reachable},
};

/// Width of the labels: the longest is `Trust this CA`.
const LABEL: usize = 15;

/// Writes where everything is, and the key if it was made just now.
///
/// # Errors
/// The output is closed.
pub fn print(out: &mut impl Write, running: &Running, config: &Config, colours: bool) -> io::Result<()> {
    let (bold, plain) = if colours { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let addresses = &running.addresses;
    writeln!(out, "{bold}Waymark is up.{plain}")?;
    let line =
        |out: &mut dyn Write, label: &str, text: &str| writeln!(out, "  {label:LABEL$}{bold}{text}{plain}");
    line(out, "API", &running.api_url)?;
    if let Some(address) = addresses.api_tls {
        line(out, "API, TLS", &format!("https://{}", reachable(address)))?;
    }
    if let Some(address) = addresses.mqtt {
        line(out, "MQTT", &format!("mqtt://{}", reachable(address)))?;
    }
    if let Some(address) = addresses.mqtt_tls {
        line(out, "MQTT, TLS", &format!("mqtts://{}", reachable(address)))?;
    }
    let (console, code) = (&running.console_url, &running.sign_in_code);
    let link = code.as_ref().map(|code| format!("{console}#sign-in={code}"));
    line(out, "Console", link.as_ref().unwrap_or(console))?;
    line(out, "Docs", &running.docs_url)?;
    for domain in &running.seeded.domains {
        line(out, "Short URLs", &format!("{}://{}", domain.scheme.as_str(), domain.host))?;
    }
    line(out, "Edge", &format!("http://{}", reachable(addresses.edge)))?;
    if let Some(address) = addresses.edge_tls {
        line(out, "Edge, TLS", &format!("https://{}", reachable(address)))?;
    }
    line(out, "Admin", &format!("http://{}", reachable(addresses.admin)))?;
    line(out, "Data", &config.data_dir.display().to_string())?;
    if let Some(ca) = &running.dev_ca {
        line(out, "Trust this CA", &ca.display().to_string())?;
    }
    if config.lan.is_some()
        && let Some(ca) = &running.dev_ca
    {
        writeln!(
            out,
            "Phones in this network can scan codes once they trust the CA: send {} to the phone and install it\n\
             (Android: Security, Install a certificate, CA certificate; iOS: open the file, Settings, Profile Downloaded,\n\
             then General, About, Certificate Trust Settings). Without it the browser warns first.",
            ca.display()
        )?;
    }
    if running.seeded.domains.iter().any(ShortDomain::is_development) {
        writeln!(
            out,
            "Codes of addresses of this machine or network are for development: do not print them."
        )?;
    }
    match (&running.seeded.new_key, &config.operator_key) {
        (Some(key), _) => {
            line(out, "Operator key", key)?;
            writeln!(out, "The key is shown this once; `waymark keys create` makes another.")?;
        }
        (None, Some(_)) => writeln!(out, "The operator key is the one in WAYMARK_OPERATOR_KEY.")?,
        (None, None) => {
            writeln!(out, "The operator key is not shown again; `waymark keys create` makes a new one.")?;
        }
    }
    match running.sign_in_code {
        Some(_) => writeln!(out, "The console's link signs you in once, within 15 minutes.")?,
        None => writeln!(
            out,
            "The console takes a mail address and a password; `waymark operators invite MAIL --role owner` makes both."
        )?,
    }
    writeln!(out, "Ctrl-C stops it.")?;
    out.flush()
}

/// Whether stdout wants colours.
#[must_use]
pub fn colours() -> bool {
    control::telemetry::wants_colours(&io::stdout())
}
