//! A local CA and certificates for trying TLS on one machine (`WAYMARK_DEV_TLS`).
//!
//! The CA stays for ten years, so that it is trusted once; the certificate is made again when the short
//! domains change or a week is left of it.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};

use crate::data_dir::{write_atomic, write_private};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Ten years: nobody installs a development CA twice.
const CA_DAYS: u32 = 3_650;

/// What public CAs give today; clients refuse more than 825.
const LEAF_DAYS: u32 = 90;

/// A certificate with less than this left is made again at the next start.
const RENEW_DAYS: u32 = 7;

/// Names that every development certificate holds.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Why development certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DevTlsError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A name or key cannot stand in a certificate.
    #[error("certificate: {0}")]
    Certificate(#[from] rcgen::Error),
}

/// Where the development certificates are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevTls {
    /// The CA that clients must trust.
    pub ca: PathBuf,
    /// Folder of `<host>.pem` and `<host>.key`.
    pub certificates: PathBuf,
}

/// What the certificates on disk hold.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    names: BTreeSet<String>,
    not_after_s: u64,
}

/// Makes the CA and the certificate for `hosts` (a port is cut) and this machine, or keeps what is there.
///
/// # Errors
/// A file cannot be used, or a host cannot stand in a certificate.
pub fn prepare<'a>(
    data_dir: &Path,
    hosts: impl IntoIterator<Item = &'a str>,
    now: SystemTime,
) -> Result<DevTls, DevTlsError> {
    let folder = data_dir.join("dev-tls");
    let tls = DevTls { ca: folder.join("ca.pem"), certificates: folder.join("certs") };
    let private = fs::DirBuilder::new().recursive(true).mode(0o700).create(&tls.certificates);
    private.map_err(at(&tls.certificates))?;
    let names: BTreeSet<String> = hosts.into_iter().map(name_of).chain(LOCAL.map(str::to_owned)).collect();
    let (authority, fresh) = authority(&folder, &tls.ca, now)?;
    let made = folder.join("certs.json");
    if !fresh && still_good(&made, &names, now) {
        return Ok(tls);
    }
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>())?;
    params.distinguished_name = subject("Waymark development");
    params.not_before = (now - DAY).into();
    params.not_after = (now + LEAF_DAYS * DAY).into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &authority)?;
    // The note goes first and comes last: a start that is cut short makes all of it again.
    if let Err(error) = fs::remove_file(&made)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(at(&made)(error));
    }
    // Clients that call an address send no name; the edge serves them `default`.
    for name in names.iter().map(String::as_str).chain(["default"]) {
        let path = tls.certificates.join(format!("{name}.key"));
        write_private(&path, key.serialize_pem().as_bytes()).map_err(at(&path))?;
        let path = tls.certificates.join(format!("{name}.pem"));
        write_atomic(&path, certificate.pem().as_bytes(), 0o644).map_err(at(&path))?;
    }
    let note = Made { names, not_after_s: seconds(now + LEAF_DAYS * DAY) };
    let note = serde_json::to_vec(&note).map_err(|error| at(&made)(error.into()))?;
    write_private(&made, &note).map_err(at(&made))?;
    Ok(tls)
}

/// The CA of this folder, and whether it is new.
fn authority(
    folder: &Path,
    ca: &Path,
    now: SystemTime,
) -> Result<(Issuer<'static, KeyPair>, bool), DevTlsError> {
    let key_path = folder.join("ca.key");
    let mut params = CertificateParams::default();
    params.distinguished_name = subject("Waymark development CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = (now - DAY).into();
    params.not_after = (now + CA_DAYS * DAY).into();
    match fs::read_to_string(&key_path) {
        Ok(pem) if ca.is_file() => return Ok((Issuer::new(params, KeyPair::from_pem(&pem)?), false)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(at(&key_path)(error)),
    }
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    write_private(&key_path, key.serialize_pem().as_bytes()).map_err(at(&key_path))?;
    write_atomic(ca, certificate.pem().as_bytes(), 0o644).map_err(at(ca))?;
    Ok((Issuer::new(params, key), true))
}

fn still_good(made: &Path, names: &BTreeSet<String>, now: SystemTime) -> bool {
    let Ok(text) = fs::read(made) else { return false };
    let Ok(note) = serde_json::from_slice::<Made>(&text) else { return false };
    note.names == *names && note.not_after_s > seconds(now + RENEW_DAYS * DAY)
}

fn subject(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

/// The name of a host as certificates have it: without port and brackets.
fn name_of(host: &str) -> String {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner).to_owned();
    }
    host.split(':').next().unwrap_or(host).to_ascii_lowercase()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn at(path: &Path) -> impl Fn(io::Error) -> DevTlsError {
    let path = path.to_owned();
    move |source| DevTlsError::File { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn read(tls: &DevTls, host: &str) -> String {
        fs::read_to_string(tls.certificates.join(format!("{host}.pem"))).unwrap()
    }

    #[test]
    fn certificates_are_reused_until_domains_change_or_a_week_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let first = prepare(folder.path(), ["tn.gg"], now).unwrap();
        let (ca, leaf) = (fs::read_to_string(&first.ca).unwrap(), read(&first, "tn.gg"));
        for (hosts, later_days, same, why) in [
            (vec!["tn.gg"], 0, true, "nothing changed"),
            (vec!["tn.gg"], 82, true, "eight days are left"),
            (vec!["tn.gg", "tn.gg:8443"], 0, true, "a port is no part of a certificate"),
            (vec!["tn.gg"], 84, false, "six days are left"),
            (vec!["tn.gg", "a.example"], 0, false, "a domain was added"),
        ] {
            let again = prepare(folder.path(), hosts, now + later_days * DAY).unwrap();
            assert_eq!(read(&again, "tn.gg") == leaf, same, "{why}");
            assert_eq!(fs::read_to_string(&again.ca).unwrap(), ca, "the CA stays: {why}");
        }
    }

    #[test]
    fn keys_are_private_and_every_name_has_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let tls = prepare(folder.path(), ["[::1]:8443", "TN.gg:8443"], SystemTime::now()).unwrap();
        for name in ["tn.gg", "localhost", "127.0.0.1", "::1"] {
            assert!(read(&tls, name).starts_with("-----BEGIN CERTIFICATE-----"), "{name}");
            let key = tls.certificates.join(format!("{name}.key"));
            assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
        let key = folder.path().join("dev-tls/ca.key");
        assert_eq!(fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
