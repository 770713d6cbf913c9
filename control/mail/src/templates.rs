//! Texts of the mails to users of applications and to operators. They contain nothing that the requester wrote, so nobody can send texts of
//! their own through this server.

use url::Url;

/// Most characters of the name of an account in a mail.
const MAX_NAME: usize = 64;

/// Subject and text of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailText {
    /// Its subject.
    pub subject: String,
    /// Its text.
    pub text: String,
}

/// A link to the page that takes codes. They are in the fragment, which browsers send to no server.
#[must_use]
pub fn link(page: Option<&Url>, members: &[(&str, &str)]) -> Option<String> {
    let mut url = page?.clone();
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(members);
    url.set_fragment(Some(&pairs.finish()));
    Some(url.into())
}

/// To somebody who registers; `is_repeated` if the address was registered before and not activated.
#[must_use]
pub fn activation(account: &str, code: &str, link: Option<&str>, is_repeated: bool) -> MailText {
    let account = display_name(account);
    let repeated = if is_repeated {
        "The address was registered before. Somebody else may have done that, so no password of a registration counts: \
         choose one when you use the code, or ask for a password reset after it.\n\n"
    } else {
        ""
    };
    let text = format!(
        "Somebody, presumably you, registered this address with {account}.\n\n{}\n{repeated}If it was not you, ignore this \
         mail.\n",
        how("This code activates the user within 7 days:", code, link)
    );
    MailText { subject: format!("Activate your user of {account}"), text }
}

/// To a user whose address somebody registers again.
#[must_use]
pub fn known(account: &str) -> MailText {
    let account = display_name(account);
    let text = format!(
        "Somebody, presumably you, tried to register this address with {account}.\n\n\
         There is a user with this address already: log in with its password, or ask for a password reset.\n\n\
         If it was not you, ignore this mail: nothing has changed.\n"
    );
    MailText { subject: format!("You are a user of {account} already"), text }
}

/// To a user for whom somebody asks for another password.
#[must_use]
pub fn reset(account: &str, code: &str, link: Option<&str>) -> MailText {
    let account = display_name(account);
    let text = format!(
        "Somebody, presumably you, asked for another password for this address with {account}.\n\n{}\n\
         If it was not you, ignore this mail: your password stays as it is.\n",
        how("This code sets another password within an hour:", code, link)
    );
    MailText { subject: format!("Reset your password of {account}"), text }
}

/// To an operator for whom somebody asks for another password.
#[must_use]
pub fn operator_reset(account: &str, code: &str) -> MailText {
    let account = display_name(account);
    let text = format!(
        "Somebody, presumably you, asked for another password of the operator of {account} with this address.\n\n{}\n\
         If it was not you, ignore this mail: your password stays as it is.\n",
        how("This code sets another password within an hour:", code, None)
    );
    MailText { subject: format!("Reset your password as operator of {account}"), text }
}

/// To somebody who is invited as an operator.
#[must_use]
pub fn invitation(account: &str, code: &str) -> MailText {
    let account = display_name(account);
    let text = format!(
        "You are invited to work in the account {account}.\n\n{}\n\
         If you do not know why, ignore this mail: nobody else can accept the invitation.\n",
        how("This code accepts the invitation within 7 days:", code, None)
    );
    MailText { subject: format!("Your invitation to {account}"), text }
}

fn how(what: &str, code: &str, link: Option<&str>) -> String {
    let link = link.map(|link| format!("\nOr open this page:\n\n{link}\n")).unwrap_or_default();
    format!("{what}\n\n{code}\n{link}")
}

/// The name of an account for a mail: one line, at most 64 characters, and nothing that mail programs show as a link.
fn display_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_NAME).collect();
    name.replace("://", " ").replace("www.", "www ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_holds_code_and_link() {
        let page: Url = "https://example.com/account?lang=de".parse().unwrap();
        let link = link(Some(&page), &[("user", "U1"), ("activationCode", "a b")]).unwrap();
        assert_eq!(link, "https://example.com/account?lang=de#user=U1&activationCode=a+b");
        let letter = activation("Acme\r\nBcc: x", "CODE", Some(&link), false);
        assert!(!letter.text.contains("before") && activation("A", "C", None, true).text.contains("before"));
        assert_eq!(letter.subject, "Activate your user of Acme  Bcc: x");
        assert!(letter.text.contains("\n\nCODE\n") && letter.text.contains(&link));
        assert!(!reset("Acme", "CODE", None).text.contains("page"));
        assert!(known("Acme").text.contains("already"));
        assert!(invitation("Acme", "CODE").text.contains("\n\nCODE\n"));
        let name = format!("Win at https://www.example.com {}", "x".repeat(100));
        let text = known(&name).text;
        assert!(!text.contains("://") && !text.contains("www.") && !text.contains(&"x".repeat(50)), "{text}");
    }
}
