//! The files in `deploy`, checked by the programs that read them; no container engine runs here to start them.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use redis::{Commands as _, RedisResult};
use tests::{
    killed::Killed,
    product::{DEADLINE, root},
    python,
};

/// Highest exposure that `systemd-analyze security` may find, in tenths: 2.0 of 10.
const EXPOSURE: &str = "20";

/// Runs a program that must end well; gives what it said.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}: install it by deploy/setup test"))?;
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    ensure!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    Ok(said)
}

#[test]
fn units_are_valid_and_hardened() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let bin = scratch.path().join("bin");
    fs::create_dir(&bin)?;
    for program in ["edge", "control", "waymark"] {
        fs::write(bin.join(program), "#!/bin/sh\n")?;
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755))?;
    }
    let mut units = Vec::new();
    for name in
        ["edge.socket", "edge.service", "control.service", "control-worker.service", "waymark.service"]
    {
        let text = fs::read_to_string(root().join("deploy/systemd").join(name))?;
        let path = scratch.path().join(name);
        // The unit is checked as it stands, but for the place of the program, which must exist.
        fs::write(&path, text.replace("/usr/local/bin", bin.to_str().context("path")?))?;
        units.push(path);
    }
    let said = run(Command::new("systemd-analyze").arg("verify").args(&units))?;
    ensure!(said.is_empty(), "systemd complains: {said}");
    for unit in units.iter().filter(|unit| unit.extension().is_some_and(|kind| kind == "service")) {
        let threshold = format!("--threshold={EXPOSURE}");
        run(Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager", &threshold])
            .arg(unit))?;
    }
    Ok(())
}

#[test]
fn container_files_pass_their_linters() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let programs = python::installed("lint", &[root().join("tests/lint/requirements.txt")])?;
    let program = |name: &str| programs.join(name);
    let deploy = root().join("deploy");
    let compose = deploy.join("compose.yaml");
    run(Command::new(program("check-jsonschema"))
        .args(["--builtin-schema", "vendor.compose-spec"])
        .arg(&compose))?;
    let files = ["edge", "control"].map(|name| deploy.join(format!("docker/{name}.Dockerfile")));
    run(Command::new(program("hadolint")).args(&files))?;
    for file in files {
        let text = fs::read_to_string(&file)?;
        ensure!(text.contains("\nUSER 65532"), "{} runs as root", file.display());
    }
    // A linter that accepts everything would be none.
    let bad = scratch.path().join("bad.yaml");
    fs::write(&bad, fs::read_to_string(&compose)?.replace("mem_limit:", "memory_limit:"))?;
    let refused = Command::new(program("check-jsonschema"))
        .args(["--builtin-schema", "vendor.compose-spec"])
        .arg(bad)
        .output()?;
    ensure!(!refused.status.success());
    Ok(())
}

#[test]
fn every_alert_fires() -> Result<()> {
    let folder = root().join("deploy/grafana");
    let promtool = || {
        let mut command = Command::new("promtool");
        command.current_dir(&folder);
        command
    };
    run(promtool().args(["check", "config", "prometheus.yml"]))?;
    run(promtool().args(["check", "rules", "alerts.yml"]))?;
    // Three minutes of work of a core: `tests/run --long` does it.
    if std::env::var_os("WAYMARK_TEST_ALERTS").is_some() {
        run(promtool().args(["test", "rules", "alerts_test.yml"]))?;
    }
    let (rules, cases) =
        (fs::read_to_string(folder.join("alerts.yml"))?, fs::read_to_string(folder.join("alerts_test.yml"))?);
    let scrape = fs::read_to_string(folder.join("prometheus.yml"))?;
    let jobs: Vec<&str> =
        scrape.lines().filter_map(|line| line.trim().strip_prefix("- job_name: ")).collect();
    ensure!(jobs.len() >= 4, "{jobs:?}");
    for job in jobs {
        let expression = format!("expr: up{{job=\"{job}\"}} == 0");
        ensure!(rules.contains(&expression), "nothing alerts when {job} is down");
    }
    let guide = fs::read_to_string(root().join("deploy/guide/alerts.md"))?;
    let names: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    ensure!(names.len() > 10, "{names:?}");
    for name in names {
        for end in ["fires", "is silent"] {
            ensure!(cases.contains(&format!("name: {name} {end}")), "no case in which {name} {end}");
        }
        ensure!(guide.contains(&format!("| `{name}` |")), "the guide does not say what {name} means");
    }
    Ok(())
}

fn redis(folder: &Path, users: &Path) -> Result<(Killed, u16)> {
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--aclfile"])
            .arg(users)
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .context("redis-server: install it by deploy/setup test")?;
        let mut child = Killed(child);
        let begun = std::time::Instant::now();
        while begun.elapsed() < DEADLINE {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok((child, port));
            }
            if child.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    bail!("no Redis came up")
}

#[test]
fn the_redis_user_of_the_edge_is_read_only() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let users = scratch.path().join("users.acl");
    let template = fs::read_to_string(root().join("deploy/docker/users.acl"))?;
    fs::write(&users, template.replace("CONTROL_PASSWORD", "cpw").replace("EDGE_PASSWORD", "epw"))?;
    let (_redis, port) = redis(scratch.path(), &users)?;
    let connect = |user: &str| -> RedisResult<redis::Connection> {
        redis::Client::open(format!("redis://{user}127.0.0.1:{port}"))?.get_connection()
    };
    ensure!(connect("")?.get::<_, Option<String>>("k").is_err(), "nobody without a password");
    let mut control = connect("waymark-control:cpw@")?;
    let _: () = control.set("{1}k", "v")?;
    let script = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])";
    let set: String = redis::Script::new(script).key("{1}s").arg("w").invoke(&mut control)?;
    ensure!(set == "w");
    let policy: Vec<String> = redis::cmd("CONFIG").arg("GET").arg("maxmemory-policy").query(&mut control)?;
    ensure!(policy.len() == 2, "{policy:?}");
    let mut edge = connect("waymark-edge:epw@")?;
    let read: Vec<Option<String>> = redis::cmd("MGET").arg(&["{1}k", "{1}s", "{1}none"]).query(&mut edge)?;
    ensure!(read == [Some("v".to_owned()), Some("w".to_owned()), None], "{read:?}");
    for refused in [
        "GET {1}k",
        "SET {1}k x",
        "DEL {1}k",
        "KEYS *",
        "SCAN 0",
        "FLUSHALL",
        "CONFIG GET *",
        "INFO",
        "EVAL return(1) 0",
    ] {
        let mut words = refused.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        words.for_each(|word| {
            command.arg(word);
        });
        let answer: RedisResult<redis::Value> = command.query(&mut edge);
        let Err(error) = answer else { bail!("{refused} was allowed") };
        ensure!(
            error.to_string().to_uppercase().contains("NOPERM") || error.to_string().contains("permission"),
            "{refused}: {error}"
        );
    }
    Ok(())
}

#[test]
fn inner_certificates_are_made_and_renewed() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join("tls");
    let make = || {
        run(Command::new(root().join("deploy/docker/make-certs"))
            .arg(&folder)
            .args(["control-1", "control-2"]))
    };
    make()?;
    let ca = fs::read(folder.join("ca.pem"))?;
    let first = fs::read(folder.join("hosts/control-1.pem"))?;
    make()?;
    ensure!(fs::read(folder.join("ca.pem"))? == ca, "edges trust it: it stays");
    ensure!(fs::read(folder.join("hosts/control-1.pem"))? != first, "a new certificate");
    for host in ["control-1", "control-2"] {
        let verify = ["verify", "-x509_strict", "-verify_hostname", host, "-CAfile"];
        run(Command::new("openssl")
            .args(verify)
            .arg(folder.join("ca.pem"))
            .arg(folder.join(format!("hosts/{host}.pem"))))?;
    }
    Ok(())
}
