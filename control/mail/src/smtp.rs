//! One mail over one connection.

use std::time::Duration;

use lettre::{
    Address, Message,
    message::{
        Mailbox,
        header::{ContentType, Header, HeaderName, HeaderValue},
    },
    transport::smtp::{
        Error,
        authentication::{Credentials, Mechanism},
        client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters},
        commands::{Data, Mail as MailFrom, Rcpt},
        extension::{ClientId, Extension, MailParameter},
    },
};

use tokio::sync::OnceCell;

use crate::{
    outbox::Mail,
    settings::{InvalidSetting, MailSettings, Protection},
};

/// Time limit of one attempt. Some servers scan a mail for a minute before they accept it; with a shorter limit they would
/// get it again and again.
const SEND_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest wait for the end of a connection on which the server has taken the mail.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Permanent answers to `RCPT TO`: there is no such mailbox, or it takes no mail.
const NO_MAILBOX: [u16; 5] = [550, 551, MAILBOX_NAME_NOT_ALLOWED, 521, 556];
const MAILBOX_NAME_NOT_ALLOWED: u16 = 553;

/// Why a mail was not sent. The texts name nobody, and repeat nothing that the server wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    /// The server refuses the recipient for good.
    #[error("the server refused the recipient with {0}")]
    Refused(u16),
    /// It may work later.
    #[error("{0}")]
    Failed(String),
}

/// The server of mail.
pub(crate) struct Smtp {
    settings: MailSettings,
    /// How the client calls itself.
    hello: ClientId,
    timeout: Duration,
    /// Built once: the CA certificates of the system are many files.
    tls: OnceCell<TlsParameters>,
}

impl Smtp {
    pub(crate) fn new(settings: MailSettings) -> Self {
        let hello = ClientId::Domain(settings.from.email.domain().to_owned());
        Self { settings, hello, timeout: SEND_TIMEOUT, tls: OnceCell::new() }
    }

    pub(crate) fn settings(&self) -> &MailSettings {
        &self.settings
    }

    /// Sends a mail; `id` is the same for each try, so that receivers recognise a repeat.
    pub(crate) async fn send(&self, id: &str, mail: &Mail) -> Result<(), SendError> {
        let mut open = None;
        let sent = tokio::time::timeout(self.timeout, self.attempt(id, mail, &mut open)).await;
        if let (Ok(_), Some(mut connection)) = (&sent, open) {
            // The mail was accepted or refused before: how the connection ends does not matter.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.abort()).await;
        }
        sent.unwrap_or_else(|_| Err(failed("the server did not answer in time")))
    }

    async fn attempt(
        &self,
        id: &str,
        mail: &Mail,
        open: &mut Option<AsyncSmtpConnection>,
    ) -> Result<(), SendError> {
        let message = self.message(id, mail)?;
        let to: Address = mail.to.parse().map_err(|_| failed("the address is no address"))?;
        let later = |error: Error| SendError::Failed(reason(&error));
        let connection = open.insert(self.connect().await.map_err(later)?);
        let mut parameters = Vec::new();
        if !mail.to.is_ascii() {
            if !connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                // The server cannot address the mailbox, which is what it would say with this code.
                return Err(SendError::Refused(MAILBOX_NAME_NOT_ALLOWED));
            }
            parameters.push(MailParameter::SmtpUtfEight);
        }
        let from = MailFrom::new(Some(self.settings.from.email.clone()), parameters);
        connection.command(from).await.map_err(later)?;
        // Only an answer to the recipient is about this mail. Everything else can be repaired at the server, so it is retried.
        connection.command(Rcpt::new(to, Vec::new())).await.map_err(|error| {
            match error.status().map(u16::from).filter(|code| NO_MAILBOX.contains(code)) {
                Some(code) => SendError::Refused(code),
                None => later(error),
            }
        })?;
        connection.command(Data).await.map_err(later)?;
        connection.message(&message).await.map(drop).map_err(later)
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let Self { settings, hello, timeout, .. } = self;
        let server = (settings.host.as_str(), settings.port);
        let (now, later) = match settings.protection {
            Protection::Tls => (Some(self.tls().await?), None),
            Protection::StartTls => (None, Some(self.tls().await?)),
            Protection::Off => (None, None),
        };
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(server, Some(*timeout), hello, now, None).await?;
        if let Some(tls) = later {
            connection.starttls(tls, hello).await?;
        }
        if let Some((user, password)) = settings.login.clone() {
            let credentials = Credentials::new(user, password);
            connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials).await?;
        }
        Ok(connection)
    }

    async fn tls(&self) -> Result<TlsParameters, Error> {
        Ok(self.tls.get_or_try_init(async || tls(&self.settings)).await?.clone())
    }

    fn message(&self, id: &str, mail: &Mail) -> Result<Vec<u8>, SendError> {
        let from = &self.settings.from;
        let to: Mailbox = mail.to.parse().map_err(|_| failed("the address is no address"))?;
        let message = Message::builder()
            .from(from.clone())
            .to(to)
            .subject(mail.subject.clone())
            .message_id(Some(format!("<{id}@{}>", from.email.domain())))
            .header(AutoSubmitted)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone());
        Ok(message.map_err(|_| failed("the mail cannot be written"))?.formatted())
    }
}

/// `Auto-Submitted` (RFC 3834): nobody's absence note answers.
#[derive(Debug, Clone, Copy)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Checks that a text holds certificates.
pub(crate) fn check_ca(pem: &[u8]) -> Result<(), InvalidSetting> {
    let is_pem = pem.windows(11).any(|part| part == b"-----BEGIN ");
    Certificate::from_pem(pem).ok().filter(|_| is_pem).map(|_| ()).ok_or(InvalidSetting::Ca)
}

fn tls(settings: &MailSettings) -> Result<TlsParameters, Error> {
    let builder = TlsParameters::builder(settings.host.clone());
    match &settings.ca {
        None => builder.build(),
        Some(pem) => builder
            .certificate_store(CertificateStore::None)
            .add_root_certificate(Certificate::from_pem(pem)?)
            .build(),
    }
}

fn failed(text: &str) -> SendError {
    SendError::Failed(text.to_owned())
}

/// An error without the server's words, which may name the recipient.
fn reason(error: &Error) -> String {
    match error.status() {
        Some(code) => format!("the server answered {code}"),
        None if error.is_response() => "the server's answer is not SMTP".to_owned(),
        None => {
            let source = std::error::Error::source(error).map(|source| format!(": {source}"));
            format!(
                "{error}{}",
                source.filter(|text| !error.to_string().contains(text.as_str())).unwrap_or_default()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
        net::TcpListener,
    };

    use super::*;

    /// Sends a mail to a server that answers each line with the next of `answers`, and then with nothing.
    async fn sent_to(answers: &'static [&'static str]) -> Result<(), SendError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("smtp://127.0.0.1:{port}?tls=off");
        let settings = MailSettings::parse(&url, "noreply@example.com").unwrap();
        let smtp = Smtp { timeout: Duration::from_millis(500), ..Smtp::new(settings) };
        let server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            for answer in answers {
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.read_line(&mut line).await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        let sent = smtp.send("id", &Mail::new("ada@example.com", "s", "t").unwrap()).await;
        server.abort();
        sent
    }

    #[tokio::test]
    async fn a_silent_server_times_out() {
        let late = Err(SendError::Failed("the server did not answer in time".to_owned()));
        // It says nothing at all, or stops after its greeting, or after it took the sender.
        for answers in [&[][..], &["220 hello\r\n"], &["220 hello\r\n", "250 hello\r\n", "250 ok\r\n"]] {
            let begun = std::time::Instant::now();
            assert_eq!(sent_to(answers).await, late, "{answers:?}");
            assert!(begun.elapsed() < Duration::from_secs(5));
        }
    }

    #[tokio::test]
    async fn only_a_permanent_answer_to_the_recipient_ends_a_mail() {
        // To the sender, and to the recipient; then it says nothing more.
        let answered = |sender, recipient| async move {
            let answers = ["220 hello\r\n", "250 hello\r\n", sender, recipient];
            sent_to(Box::leak(Box::new(answers))).await.unwrap_err()
        };
        let failed = |text: &str| SendError::Failed(text.to_owned());
        let ok = "250 ok\r\n";
        assert_eq!(answered(ok, "550 no\r\n").await, SendError::Refused(550));
        assert_eq!(answered(ok, "452 full\r\n").await, failed("the server answered 452"));
        assert_eq!(answered(ok, "554 not from you\r\n").await, failed("the server answered 554"));
        assert_eq!(answered("550 not this sender\r\n", ok).await, failed("the server answered 550"));
        assert_eq!(answered("530 log in\r\n", ok).await, failed("the server answered 530"));
        let error = sent_to(&["554 go away, ada@example.com\r\n", "221 bye\r\n"]).await.unwrap_err();
        assert_eq!(error, failed("the server answered 554"));
        let error = sent_to(&["HTTP/1.1 400 ada@example.com\r\n", "221 bye\r\n"]).await.unwrap_err();
        assert!(!error.to_string().contains("ada"), "{error}");
    }
}
