//! What the pages of an edge say, in each of its languages.

use crate::page::Kind;

/// Heading and text of a page.
type Text = (&'static str, &'static str);

/// One language.
#[derive(Debug)]
pub(crate) struct Language {
    /// Its tag.
    pub(crate) tag: &'static str,
    /// Stands before the contact for reports.
    pub(crate) report: &'static str,
    unknown: Text,
    scheduled: Text,
    paused: Text,
    ended: Text,
    copy: Text,
    suspended: Text,
    taken_down: Text,
    root: Text,
}

impl Language {
    /// Its text of a kind of page.
    pub(crate) fn of(&self, kind: Kind) -> Text {
        match kind {
            Kind::Unknown => self.unknown,
            Kind::Scheduled => self.scheduled,
            Kind::Paused => self.paused,
            Kind::Ended => self.ended,
            Kind::Copy => self.copy,
            Kind::Suspended => self.suspended,
            Kind::TakenDown => self.taken_down,
            Kind::Root => self.root,
        }
    }
}

/// The language of those who accept none of the others.
pub(crate) const ENGLISH: Language = Language {
    tag: "en",
    report: "Report abuse",
    unknown: (
        "This code leads nowhere",
        "We do not know this code. Check the address, or scan the code once more.",
    ),
    scheduled: ("This code is not active yet", "Please try again later."),
    paused: ("This code is paused", "Please try again later."),
    ended: ("This code is no longer active", "What it led to has ended."),
    copy: (
        "This item may be a copy",
        "Its code was scanned as if more than one item had it. Ask where you bought the item.",
    ),
    suspended: ("This code is out of service", "It leads nowhere for now."),
    taken_down: ("This code was taken down", "It is not safe to use it, or it is not allowed."),
    root: ("Nothing is here", "Scan a code to get to its page."),
};

/// The tag of Chinese in traditional script; `zh` is in the simplified one.
pub(crate) const TRADITIONAL_CHINESE: &str = "zh-Hant";

/// Whether a tag is of Chinese in traditional script: it says so, or names Taiwan, Hong Kong or Macau and no other script.
pub(crate) fn is_traditional(tag: &str) -> bool {
    let mut parts = tag.split('-').take_while(|part| part.len() > 1);
    if !parts.next().is_some_and(|primary| primary.eq_ignore_ascii_case("zh")) {
        return false;
    }
    // Parts of three letters are extended languages, such as `yue`.
    let named = parts.find(|part| part.len() != 3);
    let is_region = |part: &str| ["TW", "HK", "MO"].iter().any(|region| region.eq_ignore_ascii_case(part));
    named.is_some_and(|part| part.eq_ignore_ascii_case("Hant") || is_region(part))
}

/// Every language; the first is [`ENGLISH`].
pub(crate) static LANGUAGES: [Language; 15] = [
    ENGLISH,
    Language {
        tag: "de",
        report: "Missbrauch melden",
        unknown: (
            "Dieser Code führt nirgendwohin",
            "Wir kennen diesen Code nicht. Prüfen Sie die Adresse, oder scannen Sie den Code noch einmal.",
        ),
        scheduled: ("Dieser Code ist noch nicht aktiv", "Bitte versuchen Sie es später noch einmal."),
        paused: ("Dieser Code pausiert", "Bitte versuchen Sie es später noch einmal."),
        ended: ("Dieser Code ist nicht mehr aktiv", "Sein Ziel ist nicht mehr verfügbar."),
        copy: (
            "Dieser Artikel könnte eine Kopie sein",
            "Sein Code wurde gescannt, als gäbe es ihn mehrmals. Fragen Sie dort nach, wo Sie ihn gekauft haben.",
        ),
        suspended: ("Dieser Code ist außer Betrieb", "Er führt zurzeit nirgendwohin."),
        taken_down: ("Dieser Code wurde gesperrt", "Ihn zu benutzen ist nicht sicher oder nicht erlaubt."),
        root: ("Hier ist nichts", "Scannen Sie einen Code, um zu seiner Seite zu gelangen."),
    },
    Language {
        tag: "fr",
        report: "Signaler un abus",
        unknown: (
            "Ce code ne mène nulle part",
            "Nous ne connaissons pas ce code. Vérifiez l’adresse ou scannez le code encore une fois.",
        ),
        scheduled: ("Ce code n’est pas encore actif", "Veuillez réessayer plus tard."),
        paused: ("Ce code est en pause", "Veuillez réessayer plus tard."),
        ended: ("Ce code n’est plus actif", "Ce vers quoi il menait n’est plus disponible."),
        copy: (
            "Cet article est peut-être une copie",
            "Son code a été scanné comme s’il existait en plusieurs exemplaires. Renseignez-vous là où vous l’avez acheté.",
        ),
        suspended: ("Ce code est hors service", "Il ne mène nulle part pour le moment."),
        taken_down: ("Ce code a été retiré", "Son utilisation n’est pas sûre ou n’est pas autorisée."),
        root: ("Il n’y a rien ici", "Scannez un code pour arriver à sa page."),
    },
    Language {
        tag: "es",
        report: "Denunciar un abuso",
        unknown: (
            "Este código no lleva a ninguna parte",
            "No conocemos este código. Compruebe la dirección o escanee el código otra vez.",
        ),
        scheduled: ("Este código aún no está activo", "Inténtelo de nuevo más tarde."),
        paused: ("Este código está en pausa", "Inténtelo de nuevo más tarde."),
        ended: ("Este código ya no está activo", "Aquello a lo que llevaba ha terminado."),
        copy: (
            "Este artículo podría ser una copia",
            "Su código se ha escaneado como si hubiera varios iguales. Pregunte donde lo compró.",
        ),
        suspended: ("Este código está fuera de servicio", "Por ahora no lleva a ninguna parte."),
        taken_down: ("Este código fue retirado", "Usarlo no es seguro o no está permitido."),
        root: ("Aquí no hay nada", "Escanee un código para llegar a su página."),
    },
    Language {
        tag: "it",
        report: "Segnala un abuso",
        unknown: (
            "Questo codice non porta da nessuna parte",
            "Non conosciamo questo codice. Controlli l’indirizzo o scansioni di nuovo il codice.",
        ),
        scheduled: ("Questo codice non è ancora attivo", "Riprovi più tardi."),
        paused: ("Questo codice è in pausa", "Riprovi più tardi."),
        ended: ("Questo codice non è più attivo", "Ciò a cui portava è terminato."),
        copy: (
            "Questo articolo potrebbe essere una copia",
            "Il suo codice è stato scansionato come se ne esistessero più esemplari. Chieda dove l’ha acquistato.",
        ),
        suspended: ("Questo codice è fuori servizio", "Per ora non porta da nessuna parte."),
        taken_down: ("Questo codice è stato rimosso", "Usarlo non è sicuro o non è permesso."),
        root: ("Qui non c’è nulla", "Scansioni un codice per arrivare alla sua pagina."),
    },
    Language {
        tag: "pt",
        report: "Denunciar abuso",
        unknown: (
            "Este código não leva a lugar nenhum",
            "Não conhecemos este código. Verifique o endereço ou leia o código mais uma vez.",
        ),
        scheduled: ("Este código ainda não está ativo", "Tente novamente mais tarde."),
        paused: ("Este código está em pausa", "Tente novamente mais tarde."),
        ended: ("Este código já não está ativo", "Aquilo a que levava terminou."),
        copy: (
            "Este artigo pode ser uma cópia",
            "O seu código foi lido como se houvesse vários iguais. Pergunte onde o comprou.",
        ),
        suspended: ("Este código está fora de serviço", "Por agora não leva a lugar nenhum."),
        taken_down: ("Este código foi retirado", "Usá-lo não é seguro ou não é permitido."),
        root: ("Não há nada aqui", "Leia um código para chegar à sua página."),
    },
    Language {
        tag: "nl",
        report: "Misbruik melden",
        unknown: (
            "Deze code leidt nergens heen",
            "We kennen deze code niet. Controleer het adres of scan de code nog een keer.",
        ),
        scheduled: ("Deze code is nog niet actief", "Probeer het later opnieuw."),
        paused: ("Deze code is gepauzeerd", "Probeer het later opnieuw."),
        ended: ("Deze code is niet meer actief", "Waar hij heen leidde, is niet meer beschikbaar."),
        copy: (
            "Dit artikel is mogelijk een kopie",
            "De code is gescand alsof er meerdere van zijn. Vraag het na waar u het hebt gekocht.",
        ),
        suspended: ("Deze code is buiten gebruik", "Hij leidt voorlopig nergens heen."),
        taken_down: ("Deze code is verwijderd", "Het gebruik ervan is niet veilig of niet toegestaan."),
        root: ("Hier is niets", "Scan een code om op de bijbehorende pagina te komen."),
    },
    Language {
        tag: "pl",
        report: "Zgłoś nadużycie",
        unknown: (
            "Ten kod donikąd nie prowadzi",
            "Nie znamy tego kodu. Sprawdź adres albo zeskanuj kod jeszcze raz.",
        ),
        scheduled: ("Ten kod nie jest jeszcze aktywny", "Spróbuj ponownie później."),
        paused: ("Ten kod jest wstrzymany", "Spróbuj ponownie później."),
        ended: ("Ten kod nie jest już aktywny", "To, do czego prowadził, już się skończyło."),
        copy: (
            "Ten przedmiot może być kopią",
            "Jego kod skanowano tak, jakby było ich kilka. Zapytaj tam, gdzie go kupiono.",
        ),
        suspended: ("Ten kod nie działa", "Na razie donikąd nie prowadzi."),
        taken_down: (
            "Ten kod został zablokowany",
            "Używanie go nie jest bezpieczne albo nie jest dozwolone.",
        ),
        root: ("Tu nic nie ma", "Zeskanuj kod, aby przejść do jego strony."),
    },
    Language {
        tag: "cs",
        report: "Nahlásit zneužití",
        unknown: (
            "Tento kód nikam nevede",
            "Tento kód neznáme. Zkontrolujte adresu nebo kód naskenujte ještě jednou.",
        ),
        scheduled: ("Tento kód ještě není aktivní", "Zkuste to prosím později."),
        paused: ("Tento kód je pozastaven", "Zkuste to prosím později."),
        ended: ("Tento kód už není aktivní", "To, k čemu vedl, už skončilo."),
        copy: (
            "Tento výrobek může být kopií",
            "Jeho kód byl naskenován, jako by jich bylo několik. Zeptejte se tam, kde jste ho koupili.",
        ),
        suspended: ("Tento kód je mimo provoz", "Zatím nikam nevede."),
        taken_down: ("Tento kód byl zablokován", "Jeho použití není bezpečné nebo není dovoleno."),
        root: ("Tady nic není", "Naskenujte kód a dostanete se na jeho stránku."),
    },
    Language {
        tag: "tr",
        report: "Kötüye kullanımı bildirin",
        unknown: (
            "Bu kod hiçbir yere götürmüyor",
            "Bu kodu tanımıyoruz. Adresi kontrol edin veya kodu bir kez daha tarayın.",
        ),
        scheduled: ("Bu kod henüz etkin değil", "Lütfen daha sonra yeniden deneyin."),
        paused: ("Bu kod duraklatıldı", "Lütfen daha sonra yeniden deneyin."),
        ended: ("Bu kod artık etkin değil", "Götürdüğü içerik sona erdi."),
        copy: (
            "Bu ürün bir kopya olabilir",
            "Kodu, aynısından birkaç tane varmış gibi tarandı. Satın aldığınız yere sorun.",
        ),
        suspended: ("Bu kod hizmet dışı", "Şimdilik hiçbir yere götürmüyor."),
        taken_down: ("Bu kod kaldırıldı", "Kullanılması güvenli değil veya izin verilmiyor."),
        root: ("Burada hiçbir şey yok", "Sayfasına ulaşmak için bir kod tarayın."),
    },
    Language {
        tag: "ja",
        report: "不正利用を報告する",
        unknown: (
            "このコードの行き先はありません",
            "このコードは登録されていません。アドレスを確認するか、もう一度コードを読み取ってください。",
        ),
        scheduled: ("このコードはまだ有効ではありません", "しばらくしてからもう一度お試しください。"),
        paused: ("このコードは一時停止中です", "しばらくしてからもう一度お試しください。"),
        ended: ("このコードはもう有効ではありません", "このコードの案内は終了しました。"),
        copy: (
            "この商品は模倣品の可能性があります",
            "同じコードが複数あるかのように読み取られています。購入した店にお問い合わせください。",
        ),
        suspended: ("このコードは利用できません", "現在、行き先はありません。"),
        taken_down: ("このコードは停止されました", "安全でないか、許可されていないため利用できません。"),
        root: ("ここには何もありません", "コードを読み取ると、そのページが開きます。"),
    },
    Language {
        tag: "zh",
        report: "举报滥用",
        unknown: ("此二维码没有对应的页面", "没有找到这个二维码。请检查网址，或再扫描一次。"),
        scheduled: ("此二维码尚未启用", "请稍后再试。"),
        paused: ("此二维码已暂停使用", "请稍后再试。"),
        ended: ("此二维码已失效", "它指向的内容已经结束。"),
        copy: ("此商品可能是仿冒品", "该二维码的扫描情况表明可能存在多个相同的码。请向购买处咨询。"),
        suspended: ("此二维码已停止服务", "目前没有对应的页面。"),
        taken_down: ("此二维码已被停用", "使用它不安全，或不被允许。"),
        root: ("这里没有内容", "请扫描二维码打开对应的页面。"),
    },
    Language {
        tag: "zh-Hant",
        report: "檢舉濫用",
        unknown: ("此 QR 碼沒有對應的頁面", "找不到這個 QR 碼。請檢查網址，或再掃描一次。"),
        scheduled: ("此 QR 碼尚未啟用", "請稍後再試。"),
        paused: ("此 QR 碼已暫停使用", "請稍後再試。"),
        ended: ("此 QR 碼已失效", "它所指向的內容已經結束。"),
        copy: ("此商品可能是仿冒品", "此 QR 碼的掃描情況顯示可能有多個相同的碼。請向購買處洽詢。"),
        suspended: ("此 QR 碼已停止服務", "目前沒有對應的頁面。"),
        taken_down: ("此 QR 碼已被停用", "使用它並不安全，或不被允許。"),
        root: ("這裡沒有內容", "請掃描 QR 碼以開啟對應的頁面。"),
    },
    Language {
        tag: "ko",
        report: "악용 신고",
        unknown: (
            "이 코드는 연결된 페이지가 없습니다",
            "등록되지 않은 코드입니다. 주소를 확인하거나 코드를 다시 스캔해 주세요.",
        ),
        scheduled: ("이 코드는 아직 활성화되지 않았습니다", "나중에 다시 시도해 주세요."),
        paused: ("이 코드는 일시 중지되었습니다", "나중에 다시 시도해 주세요."),
        ended: ("이 코드는 더 이상 사용되지 않습니다", "이 코드의 안내는 종료되었습니다."),
        copy: (
            "이 제품은 모조품일 수 있습니다",
            "같은 코드가 여러 개 있는 것처럼 스캔되었습니다. 구입한 곳에 문의해 주세요.",
        ),
        suspended: ("이 코드는 사용할 수 없습니다", "현재 연결된 페이지가 없습니다."),
        taken_down: ("이 코드는 차단되었습니다", "사용이 안전하지 않거나 허용되지 않습니다."),
        root: ("여기에는 아무것도 없습니다", "코드를 스캔하면 해당 페이지로 이동합니다."),
    },
    Language {
        tag: "ar",
        report: "الإبلاغ عن إساءة الاستخدام",
        unknown: (
            "هذا الرمز لا يؤدي إلى أي مكان",
            "لا نعرف هذا الرمز. تحقق من العنوان أو امسح الرمز مرة أخرى.",
        ),
        scheduled: ("هذا الرمز غير مفعّل بعد", "يرجى المحاولة لاحقًا."),
        paused: ("هذا الرمز متوقف مؤقتًا", "يرجى المحاولة لاحقًا."),
        ended: ("لم يعد هذا الرمز مفعّلًا", "انتهى ما كان يؤدي إليه."),
        copy: (
            "قد يكون هذا المنتج نسخة مقلّدة",
            "تم مسح رمزه كما لو كان منه عدة قطع. اسأل في المكان الذي اشتريته منه.",
        ),
        suspended: ("هذا الرمز خارج الخدمة", "لا يؤدي إلى أي مكان حاليًا."),
        taken_down: ("تم إيقاف هذا الرمز", "استخدامه غير آمن أو غير مسموح به."),
        root: ("لا يوجد شيء هنا", "امسح رمزًا للوصول إلى صفحته."),
    },
];
