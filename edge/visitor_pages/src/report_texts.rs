//! What the form of a report and its answers say, in each language of [`LANGUAGES`](crate::texts::LANGUAGES).

/// The words of one language.
#[derive(Debug)]
pub(crate) struct ReportTexts {
    /// Its tag.
    pub(crate) tag: &'static str,
    /// The button that asks for the form, and the heading of the form.
    pub(crate) offer: &'static str,
    /// Stands before the text.
    pub(crate) ask: &'static str,
    /// Stands before the address.
    pub(crate) mail: &'static str,
    /// Stands before the photo.
    pub(crate) photo: &'static str,
    /// The button that sends it.
    pub(crate) send: &'static str,
    /// Heading and text when it was received.
    pub(crate) received: (&'static str, &'static str),
    /// Heading and text when it was not.
    pub(crate) refused: (&'static str, &'static str),
}

/// The words of a language by its tag; English for any other.
pub(crate) fn texts_of(tag: &str) -> &'static ReportTexts {
    TEXTS.iter().find(|texts| texts.tag == tag).unwrap_or(&ENGLISH)
}

const ENGLISH: ReportTexts = ReportTexts {
    tag: "en",
    offer: "Tell the maker about it",
    ask: "Where and from whom did you get the item?",
    mail: "Your e-mail address, if the maker may ask you (optional)",
    photo: "A photo, at most 5 MB (optional)",
    send: "Send",
    received: ("Thank you", "Your report has been received."),
    refused: ("Your report was not received", "Scan the code again, or try again later."),
};

static TEXTS: [ReportTexts; 15] = [
    ENGLISH,
    ReportTexts {
        tag: "de",
        offer: "Dem Hersteller melden",
        ask: "Wo und von wem haben Sie den Artikel?",
        mail: "Ihre E-Mail-Adresse, falls der Hersteller nachfragen darf (freiwillig)",
        photo: "Ein Foto, höchstens 5 MB (freiwillig)",
        send: "Senden",
        received: ("Vielen Dank", "Ihre Meldung ist angekommen."),
        refused: (
            "Ihre Meldung ist nicht angekommen",
            "Scannen Sie den Code noch einmal, oder versuchen Sie es später.",
        ),
    },
    ReportTexts {
        tag: "fr",
        offer: "Le signaler au fabricant",
        ask: "Où et de qui avez-vous obtenu cet article ?",
        mail: "Votre adresse e-mail, si le fabricant peut vous contacter (facultatif)",
        photo: "Une photo, 5 Mo au plus (facultatif)",
        send: "Envoyer",
        received: ("Merci", "Votre signalement a bien été reçu."),
        refused: (
            "Votre signalement n’a pas été reçu",
            "Scannez le code encore une fois ou réessayez plus tard.",
        ),
    },
    ReportTexts {
        tag: "es",
        offer: "Avisar al fabricante",
        ask: "¿Dónde y de quién obtuvo el artículo?",
        mail: "Su correo electrónico, si el fabricante puede preguntarle (opcional)",
        photo: "Una foto, como máximo 5 MB (opcional)",
        send: "Enviar",
        received: ("Gracias", "Hemos recibido su aviso."),
        refused: ("No hemos recibido su aviso", "Escanee el código otra vez o inténtelo más tarde."),
    },
    ReportTexts {
        tag: "it",
        offer: "Segnalarlo al produttore",
        ask: "Dove e da chi ha avuto l’articolo?",
        mail: "Il suo indirizzo e-mail, se il produttore può contattarla (facoltativo)",
        photo: "Una foto, al massimo 5 MB (facoltativo)",
        send: "Invia",
        received: ("Grazie", "La sua segnalazione è stata ricevuta."),
        refused: (
            "La sua segnalazione non è stata ricevuta",
            "Scansioni di nuovo il codice o riprovi più tardi.",
        ),
    },
    ReportTexts {
        tag: "pt",
        offer: "Avisar o fabricante",
        ask: "Onde e de quem obteve o artigo?",
        mail: "O seu endereço de e-mail, se o fabricante puder contactá-lo (opcional)",
        photo: "Uma foto, no máximo 5 MB (opcional)",
        send: "Enviar",
        received: ("Obrigado", "O seu aviso foi recebido."),
        refused: ("O seu aviso não foi recebido", "Leia o código outra vez ou tente mais tarde."),
    },
    ReportTexts {
        tag: "nl",
        offer: "Meld het aan de fabrikant",
        ask: "Waar en van wie hebt u het artikel gekregen?",
        mail: "Uw e-mailadres, als de fabrikant u iets mag vragen (optioneel)",
        photo: "Een foto, hoogstens 5 MB (optioneel)",
        send: "Versturen",
        received: ("Bedankt", "Uw melding is ontvangen."),
        refused: ("Uw melding is niet ontvangen", "Scan de code opnieuw of probeer het later nog eens."),
    },
    ReportTexts {
        tag: "pl",
        offer: "Zgłoś to producentowi",
        ask: "Gdzie i od kogo pochodzi ten przedmiot?",
        mail: "Twój adres e-mail, jeśli producent może zadać pytanie (opcjonalnie)",
        photo: "Zdjęcie, najwyżej 5 MB (opcjonalnie)",
        send: "Wyślij",
        received: ("Dziękujemy", "Zgłoszenie dotarło."),
        refused: ("Zgłoszenie nie dotarło", "Zeskanuj kod jeszcze raz albo spróbuj później."),
    },
    ReportTexts {
        tag: "cs",
        offer: "Oznámit výrobci",
        ask: "Kde a od koho výrobek máte?",
        mail: "Vaše e-mailová adresa, pokud se vás výrobce smí zeptat (nepovinné)",
        photo: "Fotografie, nejvýše 5 MB (nepovinné)",
        send: "Odeslat",
        received: ("Děkujeme", "Vaše oznámení jsme přijali."),
        refused: ("Vaše oznámení jsme nepřijali", "Naskenujte kód znovu nebo to zkuste později."),
    },
    ReportTexts {
        tag: "tr",
        offer: "Üreticiye bildirin",
        ask: "Ürünü nereden ve kimden aldınız?",
        mail: "Üretici size soru sorabilirse e-posta adresiniz (isteğe bağlı)",
        photo: "Bir fotoğraf, en fazla 5 MB (isteğe bağlı)",
        send: "Gönder",
        received: ("Teşekkürler", "Bildiriminiz alındı."),
        refused: ("Bildiriminiz alınamadı", "Kodu yeniden tarayın veya daha sonra yeniden deneyin."),
    },
    ReportTexts {
        tag: "ja",
        offer: "メーカーに知らせる",
        ask: "この商品をどこで、誰から入手しましたか。",
        mail: "メールアドレス（メーカーからお尋ねしてよい場合のみ、任意）",
        photo: "写真（5 MBまで、任意）",
        send: "送信",
        received: ("ありがとうございました", "ご報告を受け付けました。"),
        refused: (
            "ご報告を受け付けられませんでした",
            "もう一度コードを読み取るか、後でもう一度お試しください。",
        ),
    },
    ReportTexts {
        tag: "zh",
        offer: "告知生产商",
        ask: "您在哪里、从谁那里得到这件商品？",
        mail: "您的电子邮箱，如果生产商可以联系您（选填）",
        photo: "照片，最大 5 MB（选填）",
        send: "发送",
        received: ("谢谢", "我们已收到您的报告。"),
        refused: ("未收到您的报告", "请再次扫描二维码，或稍后再试。"),
    },
    ReportTexts {
        tag: "zh-Hant",
        offer: "告知製造商",
        ask: "您在哪裡、從誰那裡取得這件商品？",
        mail: "您的電子郵件，如果製造商可以聯絡您（選填）",
        photo: "照片，最大 5 MB（選填）",
        send: "傳送",
        received: ("謝謝", "我們已收到您的回報。"),
        refused: ("未收到您的回報", "請再次掃描 QR 碼，或稍後再試。"),
    },
    ReportTexts {
        tag: "ko",
        offer: "제조사에 알리기",
        ask: "이 제품을 어디서, 누구에게서 구하셨습니까?",
        mail: "제조사가 문의해도 되는 경우 이메일 주소(선택 사항)",
        photo: "사진, 최대 5MB(선택 사항)",
        send: "보내기",
        received: ("감사합니다", "신고가 접수되었습니다."),
        refused: ("신고가 접수되지 않았습니다", "코드를 다시 스캔하거나 나중에 다시 시도해 주세요."),
    },
    ReportTexts {
        tag: "ar",
        offer: "أبلغ الشركة المصنّعة",
        ask: "أين وممّن حصلت على المنتج؟",
        mail: "بريدك الإلكتروني إذا كان يجوز للشركة أن تسألك (اختياري)",
        photo: "صورة بحجم 5 ميغابايت كحد أقصى (اختياري)",
        send: "إرسال",
        received: ("شكرًا لك", "تم استلام بلاغك."),
        refused: ("لم يتم استلام بلاغك", "امسح الرمز مرة أخرى أو حاول لاحقًا."),
    },
];
