//! The steps of a new user: `deploy/run` unchanged, and the README's walk line by line.

use std::{
    fs,
    net::TcpListener,
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tests::{
    db::{Engine, Location, TestDb},
    killed::Killed,
    product::{DEADLINE, binary, root, spawn_up},
    redis::RedisServer,
};

use crate::{decode::tools, readme};

/// Longest wait for the first start: it builds.
const BUILD_DEADLINE: Duration = Duration::from_secs(900);

/// A `waymark up` and what it said; killed when dropped.
pub(crate) struct Up {
    child: Killed,
    said: Vec<String>,
}

impl Up {
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let (child, said) = spawn_up(command, BUILD_DEADLINE)?;
        Ok(Self { child: Killed(child), said })
    }

    /// What stands beside a label.
    pub(crate) fn line(&self, label: &str) -> Result<&str> {
        let found = self.said.iter().find_map(|line| line.strip_prefix(label)?.strip_prefix(' '));
        found.map(str::trim).with_context(|| format!("no line {label:?} in {:?}", self.said))
    }

    /// Stops it as Ctrl-C does.
    fn interrupt(mut self) -> Result<()> {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status()?;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "Ctrl-C ended it with {status}");
                return Ok(());
            }
            ensure!(begun.elapsed() < DEADLINE, "Ctrl-C did not stop it");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A command in a folder of its own, with no setting but the ports: API, edge, admin.
pub(crate) fn at_home(program: &Path, home: &Path, ports: [&str; 3]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_setting = name.to_str().is_some_and(|name| {
            name.starts_with("WAYMARK_")
                || ["DATABASE_URL", "REDIS_URL", "RUST_LOG"].contains(&name)
                // The runner of the tests says these of its own package; with them cargo builds much anew.
                || ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.starts_with(start))
        });
        if is_setting {
            command.env_remove(name);
        }
    }
    for (name, port) in
        ["WAYMARK_API_LISTEN", "WAYMARK_EDGE_LISTEN", "WAYMARK_ADMIN_LISTEN"].iter().zip(ports)
    {
        command.env(name, format!("127.0.0.1:{port}"));
    }
    command.current_dir(home);
    command
}

/// `deploy/run` with the binary of this build; that it builds one itself is tried on a fresh machine (`tests/fresh`).
pub(crate) fn deploy_run(home: &Path, ports: [&str; 3]) -> Result<Command> {
    let mut command = at_home(&root().join("deploy/run"), home, ports);
    command.env("WAYMARK_BINARY", tests::product::binary()?);
    Ok(command)
}

/// Every shell block of a document, each with the heading that it stands under.
fn blocks(document: &str) -> Result<Vec<(String, String)>> {
    let all = readme::blocks()?.into_iter();
    let shell = all.filter(|block| block.document == document && block.language == "sh");
    Ok(shell.map(|block| (block.heading, block.text)).collect())
}

/// What the caller of the walk gives: where the service is, as the tests give it in the environment.
const GIVEN: &str = "export API=";

/// The blocks that a user types one after the other against one product, as one script.
fn script() -> Result<String> {
    let walked: Vec<String> = blocks("README.md")?
        .into_iter()
        .filter(|(heading, block)| heading != "Two commands" && !block.starts_with(GIVEN))
        .map(|(_, block)| block)
        .collect();
    ensure!(walked.len() >= 5, "only {} blocks in the walk", walked.len());
    Ok(walked.concat())
}

/// Runs a script with these variables; gives what it said.
pub(crate) fn bash(folder: &Path, script: &str, env: &[(&str, &str)]) -> Result<String> {
    // -x, so that a failure shows its line. An example that waits for something does not wait for ever.
    let output = Command::new("timeout")
        .args(["120", "bash", "-euxo", "pipefail", "-c", script])
        .current_dir(folder)
        .envs(env.iter().copied())
        .output()?;
    let said = text(&output.stdout);
    ensure!(output.status.success(), "{}\n{said}\n{}", output.status, text(&output.stderr));
    Ok(said)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A start that is refused: exit code 64, nothing on stdout, one line that names the setting.
fn check_refused(output: &Output, setting: &str) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(64), "{out}{err}");
    assert_eq!(out, "");
    // `deploy/run` says what it does before the product speaks.
    let (_, said) = err.rsplit_once("which was built before\n").unwrap_or(("", err.as_str()));
    let lines: Vec<&str> = said.lines().collect();
    let [line] = lines[..] else { panic!("not one line: {err}") };
    assert!(line.starts_with("waymark: ") && line.contains(setting), "{line}");
}

#[test]
fn a_new_user_walks_line_by_line_and_starts_again() {
    let home = tempfile::tempdir().unwrap();
    let mut command = deploy_run(home.path(), ["0", "0", "0"]).unwrap();
    let first = Up::start(&mut command).unwrap();
    let (api, key) = (first.line("API").unwrap().to_owned(), first.line("Operator key").unwrap().to_owned());
    assert_eq!(key.len(), 80, "{key}");
    assert!(home.path().join("data").is_dir(), "the data is where the caller stands");

    // The walk as it stands; behind it, what the codes should hold.
    let walked = tempfile::tempdir().unwrap();
    let script = format!("{}\necho; call \"$API/redirections/$SHORT_ID\"", script().unwrap());
    let said = bash(walked.path(), &script, &[("API", &api), ("KEY", &key)]).unwrap();
    let record: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let payload = record["qr"]["payload"].as_str().unwrap();
    let short_url = record["shortUrl"].as_str().unwrap();
    assert_eq!(said.lines().next(), Some(short_url));
    assert!(short_url.starts_with(first.line("Short URLs").unwrap()), "{short_url}");
    assert_eq!(payload, short_url.to_ascii_uppercase());
    let read = |name| fs::read(walked.path().join(name)).unwrap();
    assert_eq!(tools::rqrr(&read("code.png"), "code.png"), [payload]);
    assert_eq!(tools::rqrr(&tools::pdftoppm(&read("code.pdf"), "600"), "code.pdf"), [payload]);

    // The same data again, on the same ports as a user's would be.
    let urls = [api.clone(), first.line("Edge").unwrap().to_owned(), first.line("Admin").unwrap().to_owned()];
    let ports = urls.each_ref().map(|url| url.rsplit(':').next().unwrap());
    first.interrupt().unwrap();
    let again = Up::start(&mut deploy_run(home.path(), ports).unwrap()).unwrap();
    assert!(again.line("Operator key").is_err(), "a key is shown once: {:?}", again.said);
    assert!(again.said.iter().any(|line| line.contains("`waymark keys create`")), "{:?}", again.said);
    let made = at_home(&binary().unwrap(), home.path(), ports).args(["keys", "create"]).output().unwrap();
    let new_key = text(&made.stdout).trim().to_owned();
    assert_eq!(new_key.len(), 80, "{made:?}");
    let script = format!(
        "curl -sS -f -H \"Authorization: $KEY\" $API/access
         curl -sS -D - -o /dev/null {short_url} | grep -i '^location: https://example.com/recall'"
    );
    for key in [&key, &new_key] {
        bash(walked.path(), &script, &[("API", &api), ("KEY", key)]).unwrap();
    }

    // A third one finds the ports taken.
    let other = tempfile::tempdir().unwrap();
    check_refused(&deploy_run(other.path(), ports).unwrap().output().unwrap(), "WAYMARK_API_LISTEN");
    again.interrupt().unwrap();
}

/// The blocks of the guide to a fleet as they stand, but with the servers of the test and free ports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fleet_of_the_guide_comes_up() {
    let blocks: Vec<String> =
        blocks("deploy/guide/fleet.md").unwrap().into_iter().map(|(_, block)| block).collect();
    assert_eq!(blocks.len(), 2, "the fleet, and a second edge");
    let database = TestDb::new(Engine::Postgres).await.unwrap();
    let redis = RedisServer::start().await.unwrap();
    let Location::Postgres(url) = &database.location else { panic!("no Postgres") };
    let url = format!("'{url}'");
    let ports = [(); 5].map(|()| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
    let [api, edge, internal, second, second_admin] = ports.map(|port| port.to_string());
    let mut script = blocks.concat();
    for (written, meant) in [
        ("postgres://waymark@127.0.0.1/waymark", url.as_str()),
        ("redis://127.0.0.1", redis.url().as_str()),
        ("127.0.0.1:8080", &format!("127.0.0.1:{api}")),
        ("127.0.0.1:8081", &format!("127.0.0.1:{edge}")),
        ("127.0.0.1:8083", &format!("127.0.0.1:{internal}")),
        ("127.0.0.1:8091", &format!("127.0.0.1:{second}")),
        ("127.0.0.1:8094", &format!("127.0.0.1:{second_admin}")),
    ] {
        assert!(script.contains(written), "{written} is not in the blocks");
        script = script.replace(written, meant);
    }
    // An edge that follows control answers an unknown id with 404; one that does not says 503.
    let script = format!(
        "trap 'kill $(jobs -p)' EXIT
         PATH=$BIN:$PATH
         export WAYMARK_API_LISTEN=127.0.0.1:{api} WAYMARK_INTERNAL_LISTEN=127.0.0.1:{internal}
         export WAYMARK_ADMIN_LISTEN=127.0.0.1:0 WAYMARK_EDGE_LISTEN=127.0.0.1:{edge} WAYMARK_DATA_DIR=./edge
         {script}
         for port in {edge} {second}; do
             for try in $(seq 300); do
                 curl -sS -o /dev/null -w '%{{http_code}}' -H 'Host: 127.0.0.1:{edge}' \
                     http://127.0.0.1:$port/UNKNOWN9 | grep -q 404 && continue 2
                 sleep 0.1
             done
             echo 'nothing serves at' $port >&2
             exit 1
         done
         test -d edge-2-data"
    );
    let home = tempfile::tempdir().unwrap();
    let mut command = at_home(Path::new("bash"), home.path(), ["0", "0", "0"]);
    let bin = binary().unwrap();
    let output = command.args(["-euo", "pipefail", "-c", &script]).env("BIN", bin.parent().unwrap()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn a_busy_port_is_one_line_and_64() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (at, setting) in
        ["WAYMARK_API_LISTEN", "WAYMARK_EDGE_LISTEN", "WAYMARK_ADMIN_LISTEN"].into_iter().enumerate()
    {
        let home = tempfile::tempdir().unwrap();
        let mut ports = ["0"; 3];
        ports[at] = &port;
        let output = at_home(&binary().unwrap(), home.path(), ports).arg("up").output().unwrap();
        check_refused(&output, setting);
        assert!(text(&output.stderr).contains(&format!("127.0.0.1:{port} is in use")), "{output:?}");
    }
}
