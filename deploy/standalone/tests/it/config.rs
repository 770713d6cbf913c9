//! Every bad setting is one clear line and exit code 64, before anything was made.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, path::Path};

use standalone::Config;

use crate::harness::{texts, waymark};

/// Runs `waymark up` with variables and arguments; gives exit code and stderr.
fn up(data: &Path, variables: &[(&str, &str)], args: &[&str]) -> (i32, String) {
    let mut command = waymark();
    command.env("WAYMARK_DATA_DIR", data).arg("up").args(args);
    // Free ports, so that a check that fails to refuse does not hang on a port in use.
    for name in ["WAYMARK_API_LISTEN", "WAYMARK_EDGE_LISTEN", "WAYMARK_ADMIN_LISTEN"] {
        command.env(name, "127.0.0.1:0");
    }
    let (code, _, error) = texts(&command.envs(variables.iter().copied()).output().unwrap());
    (code, error)
}

fn assert_refused(found: &(i32, String), key: &str, says: &str, case: &str) {
    let (code, error) = found;
    assert_eq!(*code, 64, "{case}: {error}");
    assert_eq!(error.lines().count(), 1, "one line: {case}: {error}");
    assert!(error.starts_with(&format!("waymark: {key}: ")), "names {key}: {case}: {error}");
    assert!(error.contains(says), "says {says:?}: {case}: {error}");
}

#[test]
fn bad_settings_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let empty = folder.path().to_str().unwrap();
    let short_key = "a".repeat(79);
    let odd_key = format!("{}-", "b".repeat(79));
    let sender = ("WAYMARK_MAIL_FROM", "noreply@example.com");
    let issuer = ("WAYMARK_OIDC_ISSUER", "https://login.example.com");
    let client = ("WAYMARK_OIDC_CLIENT_ID", "waymark");
    let scans = ("WAYMARK_SCANS_URL", "clickhouse://u@h/d");
    let [kept, open, two_lines] =
        [("kept", 0o600, "a secret"), ("open", 0o640, "a secret"), ("two", 0o600, "a\nsecret")].map(
            |(name, mode, text)| {
                let path = folder.path().join(name);
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                path.to_str().unwrap().to_owned()
            },
        );
    let (kept, open, two_lines) =
        (("WAYMARK_OIDC_CLIENT_SECRET_FILE", kept.as_str()), open.as_str(), two_lines.as_str());
    for (key, variables, says) in [
        ("WAYMARK_API_LISTEN", &[("WAYMARK_API_LISTEN", "foo")][..], "127.0.0.1:8080"),
        ("WAYMARK_API_LISTEN", &[("WAYMARK_API_LISTEN", "127.0.0.1")], "an IP and a port"),
        ("WAYMARK_EDGE_LISTEN", &[("WAYMARK_EDGE_LISTEN", "127.0.0.1:70000")], "an IP and a port"),
        ("WAYMARK_EDGE_TLS_LISTEN", &[("WAYMARK_EDGE_TLS_LISTEN", "8443")], "or off"),
        ("WAYMARK_API_TLS_LISTEN", &[("WAYMARK_API_TLS_LISTEN", "no")], "or off"),
        ("WAYMARK_MQTT_LISTEN", &[("WAYMARK_MQTT_LISTEN", "1883")], "or off"),
        ("WAYMARK_MQTT_LISTEN", &[("WAYMARK_MQTT_LISTEN", "0.0.0.0:0")], "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_MQTT_TLS_LISTEN", &[("WAYMARK_MQTT_TLS_LISTEN", "127.0.0.1:0")], "WAYMARK_TLS_DIR"),
        ("WAYMARK_EDGE_LISTEN", &[("WAYMARK_EDGE_LISTEN", "0.0.0.0:0")], "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_API_LISTEN", &[("WAYMARK_API_LISTEN", "[::]:0")], "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_ADMIN_LISTEN", &[("WAYMARK_ADMIN_LISTEN", "0.0.0.0:0")], "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_EDGE_TLS_LISTEN", &[("WAYMARK_EDGE_TLS_LISTEN", "127.0.0.1:0")], "WAYMARK_EDGE_ACME=on"),
        ("WAYMARK_EDGE_ACME", &[("WAYMARK_EDGE_ACME", "2")], "1 (true) nor 0 (false)"),
        ("WAYMARK_API_TLS_LISTEN", &[("WAYMARK_API_TLS_LISTEN", "127.0.0.1:0")], "WAYMARK_TLS_DIR"),
        (
            "WAYMARK_TLS_DIR",
            &[("WAYMARK_TLS_DIR", "/nonexistent"), ("WAYMARK_EDGE_TLS_LISTEN", "127.0.0.1:0")],
            "<host>.pem",
        ),
        (
            "WAYMARK_TLS_DIR",
            &[("WAYMARK_TLS_DIR", empty), ("WAYMARK_EDGE_TLS_LISTEN", "127.0.0.1:0")],
            "<host>.key",
        ),
        ("WAYMARK_TLS_DIR", &[("WAYMARK_TLS_DIR", empty)], "WAYMARK_EDGE_TLS_LISTEN"),
        ("WAYMARK_DEV_TLS", &[("WAYMARK_DEV_TLS", "1"), ("WAYMARK_TLS_DIR", empty)], "exclude each other"),
        ("WAYMARK_DEV_TLS", &[("WAYMARK_DEV_TLS", "2")], "1 (true) nor 0 (false)"),
        ("WAYMARK_BEHIND_TLS_PROXY", &[("WAYMARK_BEHIND_TLS_PROXY", "maybe")], "1 (true) nor 0 (false)"),
        ("WAYMARK_OPERATOR_KEY", &[("WAYMARK_OPERATOR_KEY", &short_key)], "exactly 80"),
        ("WAYMARK_OPERATOR_KEY", &[("WAYMARK_OPERATOR_KEY", &odd_key)], "A-Z a-z 0-9"),
        ("WAYMARK_SHORT_DOMAINS", &[("WAYMARK_SHORT_DOMAINS", "tn.gg,a..b")], "tn.gg or http://"),
        ("WAYMARK_SHORT_DOMAINS", &[("WAYMARK_SHORT_DOMAINS", "ftp://tn.gg")], "tn.gg or http://"),
        ("WAYMARK_SHORT_DOMAINS", &[("WAYMARK_SHORT_DOMAINS", "tn.gg,TN.gg")], "twice"),
        ("WAYMARK_TRUSTED_PROXIES", &[("WAYMARK_TRUSTED_PROXIES", "127.0.0.1,proxy")], "a network such as"),
        ("WAYMARK_FORWARDED_HEADER", &[("WAYMARK_FORWARDED_HEADER", "X-Real-IP")], "neither X-Forwarded-For"),
        ("WAYMARK_PUBLIC_URL", &[("WAYMARK_PUBLIC_URL", "api.example")], "https://api.example"),
        ("WAYMARK_LAN", &[("WAYMARK_LAN", "203.0.113.7")], "local network"),
        (
            "WAYMARK_LAN",
            &[("WAYMARK_LAN", "127.0.0.2"), ("WAYMARK_SHORT_DOMAINS", "tn.gg")],
            "leave WAYMARK_SHORT",
        ),
        ("WAYMARK_REQUESTS_PER_KEY", &[("WAYMARK_REQUESTS_PER_KEY", "many")], "0 (off)"),
        ("WAYMARK_REFUSALS_PER_ADDRESS", &[("WAYMARK_REFUSALS_PER_ADDRESS", "-1")], "0 (off)"),
        ("WAYMARK_LOGINS_PER_ADDRESS", &[("WAYMARK_LOGINS_PER_ADDRESS", "1000001")], "1000000"),
        ("WAYMARK_API_CONNECTIONS", &[("WAYMARK_API_CONNECTIONS", "7")], "from 8 to 1000000"),
        ("WAYMARK_MQTT_CONNECTIONS", &[("WAYMARK_MQTT_CONNECTIONS", "all")], "from 8 to 1000000"),
        ("WAYMARK_HEADER_SECONDS", &[("WAYMARK_HEADER_SECONDS", "0")], "from 1 to 600"),
        ("WAYMARK_CONNECTIONS_PER_KEY", &[("WAYMARK_CONNECTIONS_PER_KEY", "0")], "from 1 to"),
        ("WAYMARK_UPLOADS", &[("WAYMARK_UPLOADS", "0")], "from 1 to 10000"),
        ("WAYMARK_JOBS_KEPT_DAYS", &[("WAYMARK_JOBS_KEPT_DAYS", "a month")], "0 to 36500"),
        ("WAYMARK_JOBS_KEPT_DAYS", &[("WAYMARK_JOBS_KEPT_DAYS", "36501")], "0 to 36500"),
        ("WAYMARK_PRINT_CODES", &[("WAYMARK_PRINT_CODES", "1000001")], "1 to 1000000"),
        ("WAYMARK_PRINT_FILES_DAYS", &[("WAYMARK_PRINT_FILES_DAYS", "a month")], "0 to 36500"),
        ("WAYMARK_DNS_SERVER", &[("WAYMARK_DNS_SERVER", "192.0.2.53")], "an IP and a port"),
        (
            "WAYMARK_ACME_DIRECTORY",
            &[("WAYMARK_ACME_DIRECTORY", "http://acme.example/directory")],
            "scheme is not https",
        ),
        (
            "WAYMARK_ACME_DIRECTORY",
            &[("WAYMARK_ACME_DIRECTORY", "https://acme.example/directory")],
            "without WAYMARK_EDGE_TLS_LISTEN",
        ),
        (
            // With an authority the listener of the edge needs no more.
            "WAYMARK_MQTT_TLS_LISTEN",
            &[
                ("WAYMARK_ACME_DIRECTORY", "https://acme.example/directory"),
                ("WAYMARK_EDGE_TLS_LISTEN", "127.0.0.1:0"),
                ("WAYMARK_MQTT_TLS_LISTEN", "127.0.0.1:0"),
            ],
            "WAYMARK_TLS_DIR",
        ),
        (
            "WAYMARK_EDGE_TLS_LISTEN",
            &[
                ("WAYMARK_ACME_DIRECTORY", "https://acme.example/directory"),
                ("WAYMARK_EDGE_TLS_LISTEN", "127.0.0.1:0"),
                ("WAYMARK_EDGE_ACME", "off"),
            ],
            "WAYMARK_EDGE_ACME=on",
        ),
        (
            "WAYMARK_ACME_CONTACT",
            &[("WAYMARK_ACME_CONTACT", "ops@example.com")],
            "without WAYMARK_ACME_DIRECTORY",
        ),
        (
            "WAYMARK_ACME_TRUST_FILE",
            &[
                ("WAYMARK_ACME_DIRECTORY", "https://acme.example/directory"),
                ("WAYMARK_ACME_TRUST_FILE", "/nonexistent.pem"),
            ],
            "give a PEM file",
        ),
        (
            "WAYMARK_SMTP_URL",
            &[("WAYMARK_SMTP_URL", "smtp://u:secret@"), sender],
            "smtps://user:password@host",
        ),
        (
            "WAYMARK_SMTP_URL",
            &[("WAYMARK_SMTP_URL", "smtp://u:secret@x?tls=off"), sender],
            "this machine only",
        ),
        ("WAYMARK_MAIL_FROM", &[("WAYMARK_SMTP_URL", "smtps://u:secret@x")], "noreply@example.com"),
        (
            "WAYMARK_MAIL_FROM",
            &[("WAYMARK_SMTP_URL", "smtps://x"), ("WAYMARK_MAIL_FROM", "x")],
            "no mail address",
        ),
        ("WAYMARK_MAIL_FROM", &[sender], "without WAYMARK_SMTP_URL"),
        ("WAYMARK_MAILS_PER_ACCOUNT", &[("WAYMARK_MAILS_PER_ACCOUNT", "-1")], "from 0 to"),
        (
            "WAYMARK_SMTP_CA",
            &[("WAYMARK_SMTP_URL", "smtps://x"), sender, ("WAYMARK_SMTP_CA", "/nonexistent.pem")],
            "give a PEM file",
        ),
        ("WAYMARK_OIDC_CLIENT_ID", &[issuer], "needs it"),
        ("WAYMARK_OIDC_CLIENT_ID", &[client], "without WAYMARK_OIDC_ISSUER"),
        ("WAYMARK_OIDC_CLIENT_SECRET_FILE", &[issuer, client], "needs it"),
        (
            "WAYMARK_OIDC_CLIENT_SECRET_FILE",
            &[issuer, client, ("WAYMARK_OIDC_CLIENT_SECRET_FILE", "/nonexistent")],
            "cannot be read",
        ),
        (
            "WAYMARK_OIDC_CLIENT_SECRET_FILE",
            &[issuer, client, ("WAYMARK_OIDC_CLIENT_SECRET_FILE", open)],
            "chmod 600",
        ),
        (
            "WAYMARK_OIDC_CLIENT_SECRET_FILE",
            &[issuer, client, ("WAYMARK_OIDC_CLIENT_SECRET_FILE", two_lines)],
            "one line of printable ASCII",
        ),
        (
            "WAYMARK_OIDC_ISSUER",
            &[("WAYMARK_OIDC_ISSUER", "http://login.example.com"), client, kept],
            "on this machine only",
        ),
        ("WAYMARK_OIDC_ISSUER", &[("WAYMARK_OIDC_ISSUER", "login"), client, kept], "no URL"),
        (
            "WAYMARK_OIDC_CA",
            &[issuer, client, kept, ("WAYMARK_OIDC_CA", "/nonexistent.pem")],
            "give a PEM file",
        ),
        ("WAYMARK_OIDC_CA", &[issuer, client, kept, ("WAYMARK_OIDC_CA", kept.1)], "no PEM file"),
        (
            "WAYMARK_OIDC_REQUIRED_CLAIM",
            &[("WAYMARK_OIDC_REQUIRED_CLAIM", "hd=x")],
            "without WAYMARK_OIDC_ISSUER",
        ),
        (
            "WAYMARK_OIDC_REQUIRED_CLAIM",
            &[issuer, client, kept, ("WAYMARK_OIDC_REQUIRED_CLAIM", "hd")],
            "a name and its value",
        ),
        (
            "WAYMARK_SCANS_URL",
            &[("WAYMARK_SCANS_URL", "http://u:secret@127.0.0.1:8123/waymark")],
            "clickhouse://user",
        ),
        ("WAYMARK_SCANS_URL", &[("WAYMARK_SCANS_URL", "clickhouse://u:secret@h/d?tls=1")], "?cluster=NAME"),
        (
            "WAYMARK_SCANS_URL",
            &[("WAYMARK_SCANS_URL", "clickhouse://u:secret@h/a-b")],
            "letters, digits and _",
        ),
        ("WAYMARK_SCANS_CA", &[("WAYMARK_SCANS_CA", "/ca.pem")], "without WAYMARK_SCANS_URL"),
        (
            "WAYMARK_SCANS_PASSWORD_FILE",
            &[("WAYMARK_SCANS_PASSWORD_FILE", "/nonexistent")],
            "without WAYMARK_SCANS_URL",
        ),
        ("WAYMARK_SCANS_PASSWORD_FILE", &[scans, ("WAYMARK_SCANS_PASSWORD_FILE", open)], "chmod 600"),
        ("WAYMARK_SCANS_PASSWORD_FILE", &[scans, ("WAYMARK_SCANS_PASSWORD_FILE", two_lines)], "one line"),
        (
            "WAYMARK_SCANS_PASSWORD_FILE",
            &[("WAYMARK_SCANS_URL", "clickhouse://u:secret@h/d"), ("WAYMARK_SCANS_PASSWORD_FILE", kept.1)],
            "give one of them",
        ),
        ("WAYMARK_SCANS_CA", &[scans, ("WAYMARK_SCANS_CA", kept.1)], "clickhouses://"),
        (
            "WAYMARK_SCANS_CA",
            &[("WAYMARK_SCANS_URL", "clickhouses://u@h/d"), ("WAYMARK_SCANS_CA", kept.1)],
            "PEM form",
        ),
        ("WAYMARK_EDGE_REPLICA", &[("WAYMARK_EDGE_REPLICA", "half")], "off nor full"),
        ("WAYMARK_FAST_REDIRECTS", &[("WAYMARK_FAST_REDIRECTS", "fast")], "neither 1 (true) nor 0 (false)"),
        ("WAYMARK_GEOIP_DB", &[("WAYMARK_GEOIP_DB", "/nonexistent.mmdb")], ".mmdb"),
        ("WAYMARK_FILES_URL", &[("WAYMARK_FILES_URL", "s3://")], "s3://bucket/prefix"),
        ("WAYMARK_FILES_URL", &[("WAYMARK_FILES_URL", "https://files.test/x")], "s3://bucket/prefix"),
        ("DATABASE_URL", &[("DATABASE_URL", "mysql://root:secret@x/y")], "postgres://"),
        ("DATABASE_URL", &[("DATABASE_URL", "sqlite::memory:")], "SQLite file"),
        ("REDIS_URL", &[("REDIS_URL", "redis://127.0.0.1")], "works without Redis"),
        ("WAYMARK_LOG_FORMAT", &[("WAYMARK_LOG_FORMAT", "xml")], "text nor json"),
        ("RUST_LOG", &[("RUST_LOG", "edge=loud")], "info"),
        (
            "WAYMARK_EDGE_LISTEN",
            &[("WAYMARK_API_LISTEN", "127.0.0.1:9"), ("WAYMARK_EDGE_LISTEN", "127.0.0.1:9")],
            "taken by WAYMARK_API_LISTEN",
        ),
        ("WAYMARK_CONFIG", &[("WAYMARK_CONFIG", "/nonexistent.toml")], "/nonexistent.toml"),
    ] {
        let found = up(&data, variables, &[]);
        assert_refused(&found, key, says, &format!("{variables:?}"));
        assert!(!found.1.contains(&odd_key) && !found.1.contains("secret"), "no secrets: {}", found.1);
        assert!(!data.exists(), "nothing was made: {variables:?}");
    }
}

#[test]
fn a_wrong_flag_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["--bogus"][..], &["--api-listen"], &["extra"]] {
        let (code, error) = up(folder.path(), &[], args);
        assert_eq!((code, error.lines().count()), (64, 1), "{args:?}: {error}");
    }
}

#[test]
fn certificates_by_acme_are_for_the_edge_alone() {
    let folder = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0".parse::<std::net::SocketAddr>().ok();
    let config =
        Config { edge_acme: true, edge_tls_listen: any, ..Config::on_free_ports(folder.path().into()) };
    config.check().unwrap();
    let refused = Config { api_tls_listen: any, ..config }.check().unwrap_err();
    assert!(refused.to_string().contains("WAYMARK_API_TLS_LISTEN"), "{refused}");
}

#[test]
fn toml_files_are_strict() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("waymark.toml"));
    for (text, key, says) in [
        ("api_lisen = \"127.0.0.1:0\"", "WAYMARK_CONFIG", "api_lisen"),
        ("api_listen = ", "WAYMARK_CONFIG", "waymark.toml"),
        ("api_listen = { port = 1 }", "WAYMARK_CONFIG", "api_listen"),
        ("short_domains = [\"tn.gg\", \"a..b\"]", "WAYMARK_SHORT_DOMAINS", "a..b"),
        ("dev_tls = true\ntls_dir = \"x\"", "WAYMARK_DEV_TLS", "exclude"),
    ] {
        fs::write(&file, text).unwrap();
        let found = up(&data, &[("WAYMARK_CONFIG", file.to_str().unwrap())], &[]);
        assert_refused(&found, key, says, text);
        assert!(!data.exists(), "nothing was made: {text}");
    }
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waymark.toml");
    fs::write(&file, "log_format = \"from-file\"").unwrap();
    let file = file.to_str().unwrap();
    let variable = ("WAYMARK_LOG_FORMAT", "from-variable");
    for (variables, args, wins) in [
        (&[][..], &["--config", file][..], "from-file"),
        (&[("WAYMARK_LOG_FORMAT", "")], &["--config", file], "from-file"),
        (&[variable], &["--config", file], "from-variable"),
        (&[variable], &["--config", file, "--log-format", "from-flag"], "from-flag"),
    ] {
        let found = up(folder.path(), variables, args);
        assert_refused(&found, "WAYMARK_LOG_FORMAT", wins, &format!("{variables:?} {args:?}"));
    }
}

#[test]
fn what_only_a_look_can_tell_is_refused_too() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no database").unwrap();
    let file = file.to_str().unwrap();
    for (key, variables, says) in [
        ("WAYMARK_API_LISTEN", ("WAYMARK_API_LISTEN", taken.1.as_str()), "in use"),
        ("WAYMARK_EDGE_LISTEN", ("WAYMARK_EDGE_LISTEN", &taken.1), "in use"),
        ("WAYMARK_ADMIN_LISTEN", ("WAYMARK_ADMIN_LISTEN", &taken.1), "in use"),
        ("WAYMARK_API_LISTEN", ("WAYMARK_API_LISTEN", "[fe80::1]:0"), "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_GEOIP_DB", ("WAYMARK_GEOIP_DB", file), "city database"),
        ("DATABASE_URL", ("DATABASE_URL", file), "cannot be used"),
        ("WAYMARK_FILES_URL", ("WAYMARK_FILES_URL", file), "cannot be used"),
        ("WAYMARK_DATA_DIR", ("WAYMARK_DATA_DIR", file), "cannot be used"),
        ("WAYMARK_SECRET_KEY_FILE", ("WAYMARK_SECRET_KEY_FILE", "/nonexistent"), "is not there"),
    ] {
        let found = up(&folder.path().join("data"), &[variables], &[]);
        assert_refused(&found, key, says, &format!("{variables:?}"));
    }
}

#[test]
fn help_names_every_variable_and_its_default() {
    let (code, help, _) = texts(&waymark().args(["up", "--help"]).output().unwrap());
    assert_eq!(code, 0);
    for (variable, default) in [
        ("WAYMARK_DATA_DIR", "./data"),
        ("WAYMARK_API_LISTEN", "127.0.0.1:8080"),
        ("WAYMARK_EDGE_LISTEN", "127.0.0.1:8081"),
        ("WAYMARK_EDGE_TLS_LISTEN", "off"),
        ("WAYMARK_ADMIN_LISTEN", "127.0.0.1:8082"),
        ("WAYMARK_SHORT_DOMAINS", "the edge's own address"),
        ("WAYMARK_OPERATOR_KEY", "a random one"),
        ("WAYMARK_API_TLS_LISTEN", "off"),
        ("WAYMARK_MQTT_LISTEN", "off"),
        ("WAYMARK_MQTT_TLS_LISTEN", "off"),
        ("WAYMARK_TLS_DIR", "none"),
        ("WAYMARK_EDGE_ACME", "off"),
        ("WAYMARK_BEHIND_TLS_PROXY", "false"),
        ("WAYMARK_DEV_TLS", "false"),
        ("WAYMARK_TRUSTED_PROXIES", "none"),
        ("WAYMARK_FORWARDED_HEADER", "X-Forwarded-For"),
        ("WAYMARK_LAN", "off"),
        ("WAYMARK_REQUESTS_PER_KEY", "2000"),
        ("WAYMARK_REFUSALS_PER_ADDRESS", "5"),
        ("WAYMARK_LOGINS_PER_ADDRESS", "30"),
        ("WAYMARK_API_CONNECTIONS", "a quarter"),
        ("WAYMARK_MQTT_CONNECTIONS", "a quarter"),
        ("WAYMARK_API_CONNECTIONS_PER_ADDRESS", "100"),
        ("WAYMARK_CONNECTIONS_PER_KEY", "a quarter"),
        ("WAYMARK_CONNECTIONS_PER_ACCOUNT", "three quarters"),
        ("WAYMARK_CONNECTIONS=", "half"),
        ("WAYMARK_CONNECTIONS_PER_ADDRESS", "200"),
        ("WAYMARK_HEADER_SECONDS", "5"),
        ("WAYMARK_UPLOADS", "32"),
        ("WAYMARK_UPLOAD_BYTES_PER_SECOND", "8192"),
        ("WAYMARK_JOBS_KEPT_DAYS", "30"),
        ("WAYMARK_PRINT_CODES", "1000000"),
        ("WAYMARK_PRINT_FILES_DAYS", "30"),
        ("WAYMARK_MAILS_PER_ACCOUNT", "2000"),
        ("WAYMARK_EDGE_REPLICA", "off"),
        ("WAYMARK_FAST_REDIRECTS", "on"),
        ("WAYMARK_GEOIP_DB", "none"),
        ("DATABASE_URL", "DATA_DIR/waymark.db"),
        ("WAYMARK_SECRET_KEY_FILE", "DATA_DIR/secret.key"),
        ("WAYMARK_FILES_URL", "DATA_DIR/files"),
        ("REDIS_URL", "none"),
    ] {
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let (before, _) = words.split_once(&format!("[env: {variable}")).expect(variable);
        let (_, shown) = before.rsplit_once("[default: ").expect(variable);
        assert!(shown.starts_with(default), "{variable}: {shown}");
    }
}
