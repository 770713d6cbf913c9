//! Every invalid setting of `control` gives one clear line and exit code 64, before a port is bound.

use std::{path::PathBuf, process::Command, sync::LazyLock};

use tests::product::{built, free_ports};

use crate::ops::waits_for_postgres;

fn serve(variables: &[(&str, &str)]) -> (i32, String) {
    let output = command().envs(variables.iter().copied()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A folder with a key file, for the life of the test's process.
static KEYS: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.key");
    tests::product::write_key(&path, &"5e".repeat(32)).unwrap();
    (folder, path)
});

fn command() -> Command {
    let mut command = Command::new(built("control").unwrap());
    command
        .arg("serve")
        .env("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
        .env("REDIS_URL", "redis://127.0.0.1:1")
        .env("WAYMARK_SECRET_KEY_FILE", &KEYS.1)
        .env("WAYMARK_FILES_URL", "/nonexistent/files");
    command.envs(free_ports(["API", "INTERNAL", "ADMIN"]));
    command
}

#[test]
fn bad_settings_of_control_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().to_str().unwrap();
    let put = |name: &str, text: &str, mode: u32| {
        let path = KEYS.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let open = put("open", &"5e".repeat(32), 0o640);
    let short = put("short", "5e5e", 0o600);
    let none = put("none", "\n", 0o600);
    for (key, variables, says) in [
        ("DATABASE_URL", &[("DATABASE_URL", "")][..], "postgres://"),
        ("DATABASE_URL", &[("DATABASE_URL", "data/waymark.db")], "a fleet needs Postgres and Redis"),
        ("REDIS_URL", &[("REDIS_URL", "")], "redis://"),
        ("REDIS_URL", &[("REDIS_URL", "http://127.0.0.1")], "redis://"),
        ("WAYMARK_REDIS_CA", &[("WAYMARK_REDIS_CA", "/nonexistent")], "PEM"),
        ("WAYMARK_REDIS_SHARDS", &[("WAYMARK_REDIS_SHARDS", "0")], "1 to 256"),
        ("WAYMARK_REGION", &[("WAYMARK_REGION", "a b")], "letters"),
        ("WAYMARK_MIGRATE", &[("WAYMARK_MIGRATE", "perhaps")], "1 (true) nor 0 (false)"),
        ("WAYMARK_FILES_URL", &[("WAYMARK_FILES_URL", "")], "share"),
        ("WAYMARK_SECRET_KEY_FILE", &[("WAYMARK_SECRET_KEY_FILE", "")], "control secrets new-key"),
        ("WAYMARK_SECRET_KEY_FILE", &[("WAYMARK_SECRET_KEY_FILE", "/nonexistent")], "is not there"),
        ("WAYMARK_SECRET_KEY_FILE", &[("WAYMARK_SECRET_KEY_FILE", empty)], "is no file"),
        ("WAYMARK_SECRET_KEY_FILE", &[("WAYMARK_SECRET_KEY_FILE", &open)], "chmod 600"),
        ("WAYMARK_SECRET_KEY_FILE", &[("WAYMARK_SECRET_KEY_FILE", &short)], "line 1 is no key"),
        ("WAYMARK_SECRET_KEY_FILE", &[("WAYMARK_SECRET_KEY_FILE", &none)], "holds no key"),
        ("WAYMARK_PUBLIC_URL", &[("WAYMARK_PUBLIC_URL", "api.example")], "https://api.example"),
        ("WAYMARK_INTERNAL_LISTEN", &[("WAYMARK_INTERNAL_LISTEN", "0.0.0.0:0")], "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_ADMIN_LISTEN", &[("WAYMARK_ADMIN_LISTEN", "[::]:0")], "WAYMARK_BEHIND_TLS_PROXY"),
        ("WAYMARK_INTERNAL_TLS_LISTEN", &[("WAYMARK_INTERNAL_TLS_LISTEN", "127.0.0.1:0")], "WAYMARK_TLS_DIR"),
        ("WAYMARK_TLS_DIR", &[("WAYMARK_TLS_DIR", empty)], "WAYMARK_INTERNAL_TLS_LISTEN"),
        (
            "WAYMARK_TLS_DIR",
            &[("WAYMARK_TLS_DIR", empty), ("WAYMARK_INTERNAL_TLS_LISTEN", "0.0.0.0:0")],
            "<host>.pem",
        ),
        ("WAYMARK_GEOIP_DB", &[("WAYMARK_GEOIP_DB", "/nonexistent")], ".mmdb"),
        ("WAYMARK_LOG_FORMAT", &[("WAYMARK_LOG_FORMAT", "xml")], "text nor json"),
        (
            "WAYMARK_INTERNAL_LISTEN",
            &[("WAYMARK_API_LISTEN", "127.0.0.1:39"), ("WAYMARK_INTERNAL_LISTEN", "127.0.0.1:39")],
            "taken by",
        ),
    ] {
        let (code, error) = serve(variables);
        assert_eq!(code, 64, "{variables:?}: {error}");
        assert_eq!(error.lines().count(), 1, "one line: {error}");
        assert!(error.starts_with(&format!("control: {key}: ")), "names {key}: {error}");
        assert!(error.contains(says), "says {says:?}: {error}");
        assert!(!error.contains("5e5e"), "shows no key: {error}");
    }
}

#[test]
fn valid_settings_wait_for_postgres() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let mut child = waits_for_postgres(command().env("WAYMARK_FILES_URL", files)).unwrap();
    tests::redis::signal(child.id(), "TERM").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "it did not start");
}

#[test]
fn help_documents_every_setting_with_its_default() {
    let help = |args: &[&str]| {
        let output = Command::new(built("control").unwrap()).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let serve = help(&["serve", "--help"]);
    let options: Vec<&str> =
        serve.split("\n      --").skip(1).filter(|text| text.contains("[env:")).collect();
    assert!(options.len() > 20, "{serve}");
    for option in options {
        assert!(option.contains("[default:") || option.contains("(required)"), "{option}");
    }
    for args in [
        &["--help"][..],
        &["migrate", "--help"],
        &["keys", "create", "--help"],
        &["accounts", "create", "--help"],
        &["accounts", "domains", "add", "--help"],
        &["edge-keys", "revoke", "--help"],
        &["secrets", "new-key", "--help"],
        &["secrets", "rotate", "--help"],
    ] {
        help(args);
    }
}
