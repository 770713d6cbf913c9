use std::{
    net::TcpListener as Blocking,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// Answers with one list after the other; the last stays.
struct Script {
    answers: Mutex<Vec<Vec<SocketAddr>>>,
    asked: AtomicUsize,
}

impl Lookup for Script {
    fn lookup(&self, _: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Box::pin(async move { Ok(answer) })
    }
}

fn client(loopback: bool, answers: &[&[&str]]) -> (EgressClient, Arc<Script>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
    let answers = Mutex::new(answers.iter().map(parse).collect());
    let script = Arc::new(Script { answers, asked: AtomicUsize::new(0) });
    (EgressClient::new(loopback, script.clone()).unwrap(), script)
}

fn post(url: &str) -> Post<'_> {
    Post { url, headers: &[("webhook-id", "m")], body: "{}" }
}

#[tokio::test]
async fn names_that_resolve_to_private_addresses_are_refused() {
    for answers in [
        ["127.0.0.1:0"].as_slice(),
        &["10.0.0.1:0"],
        &["169.254.169.254:0"],
        &["[::ffff:127.0.0.1]:0"],
        &["[fe80::1]:0"],
        &["93.184.216.34:0", "127.0.0.1:0"],
        &[],
    ] {
        let (client, script) = client(false, &[answers]);
        let failed = client.post(post("https://rebind.example/")).await;
        assert_eq!(failed, Err(Closed.to_string()), "{answers:?}");
        assert_eq!(script.asked.load(Ordering::SeqCst), 1);
    }
    let (client, script) = client(false, &[&["93.184.216.34:0"]]);
    let failed = client.post(post("https://2130706433/")).await.unwrap_err();
    assert!(failed.contains("private or local"), "{failed}");
    assert_eq!(script.asked.load(Ordering::SeqCst), 0, "an address is not asked for");
}

/// A name that is public when the URL is stored, and private when the connection is made: the connection goes to
/// the checked address.
#[tokio::test]
async fn a_changed_dns_answer_is_checked_again() {
    let inside = Blocking::bind("127.0.0.1:0").unwrap();
    inside.set_nonblocking(true).unwrap();
    let port = inside.local_addr().unwrap().port();
    let (client, script) = client(false, &[&["192.0.2.1:0"], &["127.0.0.1:0"]]);
    for _ in 0..2 {
        let failed = client.post(post(&format!("https://rebind.example:{port}/"))).await;
        assert_eq!(failed, Err(Closed.to_string()));
    }
    assert_eq!(script.asked.load(Ordering::SeqCst), 2);
    assert!(inside.accept().is_err(), "nobody came");
}

/// The name is resolved once, and the connection uses that answer, whatever the next one would be.
#[tokio::test]
async fn the_connection_uses_the_checked_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (client, script) = client(true, &[&["127.0.0.1:0"], &["10.0.0.1:0"]]);
    let url = format!("https://rebind.example:{port}/");
    let accept = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut hello = [0; 1];
        stream.read_exact(&mut hello).await.unwrap();
        hello
    };
    let (failed, hello) = tokio::join!(client.post(post(&url)), accept);
    // A TLS record of a handshake; no TLS server listens here.
    assert_eq!(hello, [22]);
    assert!(failed.is_err());
    assert_eq!(script.asked.load(Ordering::SeqCst), 1);
}

/// Serves one connection after the other with fixed bytes.
async fn serve(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = [0; 4_096];
            let _ = stream.read(&mut read).await;
            let _ = stream.write_all(answer).await;
        }
    });
    address
}

#[tokio::test]
async fn responses_are_read_partially_and_redirects_are_not_followed() {
    let (client, _) = client(true, &[&["127.0.0.1:0"]]);
    let inner = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
    let address = serve(inner.as_bytes()).await;
    let answer = client.post(post(&format!("http://{address}/"))).await.unwrap();
    assert_eq!((answer.status, answer.excerpt.as_str()), (302, ""));
    let address = serve(b"HTTP/1.1 500 X\r\ncontent-length: 6\r\n\r\na\0\xffbc\n").await;
    let answer = client.post(post(&format!("http://localhost:{}/", address.port()))).await.unwrap();
    assert_eq!((answer.status, answer.excerpt.as_str()), (500, "a\u{fffd}\u{fffd}bc\n"));
    // It closes early.
    let address = serve(b"").await;
    assert_eq!(
        client.post(post(&format!("http://{address}/"))).await,
        Err("the connection broke".to_owned())
    );
}

#[tokio::test]
async fn a_look_asks_the_ports_of_pages_alone_and_as_a_robot() {
    let (guarded, script) = client(false, &[&["93.184.216.34:0"]]);
    for url in ["http://page.example:22/", "https://page.example:8443/", "http://93.184.216.34:6379/"] {
        let failed = guarded.look(url).await;
        assert_eq!(failed, Err("the URL must have the port 80 or 443".to_owned()), "{url}");
    }
    assert_eq!(script.asked.load(Ordering::SeqCst), 0, "nothing is looked up");
    let (open, _) = client(true, &[&["127.0.0.1:0"]]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://page.example:{}/", listener.local_addr().unwrap().port());
    let answer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = [0; 4_096];
        let count = stream.read(&mut read).await.unwrap();
        stream.write_all(b"HTTP/1.1 204 X\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&read[..count]).into_owned()
    };
    let (page, request) = tokio::join!(open.look(&url), answer);
    assert_eq!(page, Ok(Page { status: 204, url }));
    assert!(request.starts_with("HEAD / ") && request.contains(" (link check bot)\r\n"), "{request}");
    assert_eq!(request.to_lowercase().matches("user-agent: ").count(), 1, "{request}");
}
