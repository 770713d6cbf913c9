//! URIs made from a seed: right Digital Links, and such with one fault or several.

/// The characters of serials and lots.
const CSET82: &[u8] = b"!\"%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// Bytes that spoil a value or a path where they are put in, encoded or not.
#[rustfmt::skip]
const STRANGE: &[&str] = &[
    " ", "%20", "^", "%5E", "%00", "%23", "$", "@", "~", "[", "%7C", "|", "\"", "<", "{", "\\", "`", "é", "%C3%A9",
    "%FF", "%zz", "%", "%4", "%2F", "/", "%2f", "+", "%2B", "?", "%3F", "=", "&", "%26", "\u{1}", ";", ",", "%25",
];

/// Parameters that go with a GTIN: names of AIs, values, and what else they need.
#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "11=251231", "11=250200", "11=240229", "11=230229", "12=251231", "13=250100", "15=000229", "16=720229",
    "17=991300", "20=01", "240=X-1", "241=PART", "242=123456", "243=abc", "250=S2", "251=REF", "30=12345678", "37=1",
    "02=09521234543213", "00=106141412345678908", "253=9521321000018", "253=9521321000018ABC", "255=9521321000018",
    "3100=000195", "3105=000195", "3103=000195&3104=000195", "3106=000195", "3922=123", "3922=123&3103=000195",
    "3922=123&30=4", "3932=978123&30=1", "3932=97812&3103=000001", "3932=000123&30=1", "3902=123&255=9521321000018",
    "3940=0010", "3950=000123&30=1", "400=ORDER", "401=9521ABC", "401=952A", "402=95213210000000014",
    "402=10614141234567894", "403=R", "410=9521321000018", "411=9521321000018", "414=9521321000018",
    "414=9521321000019", "415=9521321000018", "416=9521321000018", "417=9521321000018", "420=12345", "421=276123",
    "421=276123&420=1", "422=276", "422=999", "423=276840", "423=27684", "423=276840040036056", "424=056", "425=840",
    "426=276", "426=276&422=276", "427=CA", "427=CA&422=124", "4300=A%252BB&00=106141412345678908",
    "4300=A%25ZZ&00=106141412345678908", "4302=a&4303=b&00=106141412345678908", "4303=b&00=106141412345678908",
    "4307=DE&00=106141412345678908", "4307=XX&00=106141412345678908",
    "4309=18000000003600000000&00=106141412345678908", "4309=18000000013600000000&00=106141412345678908",
    "4309=18000000003600000001&00=106141412345678908", "4321=1&00=106141412345678908", "4321=2&00=106141412345678908",
    "4324=2512312359&00=106141412345678908", "4324=2512312400&00=106141412345678908",
    "4324=2512310060&00=106141412345678908", "4326=251231&00=106141412345678908", "4326=251200&00=106141412345678908",
    "4330=000100-&00=106141412345678908", "4330=000100x&00=106141412345678908",
    "4330=000100&4331=000100&00=106141412345678908", "4331=000100&00=106141412345678908", "7001=1234567890123",
    "7002=CUT", "7003=2512312359", "7003=2512002359", "7003=2502292359", "7004=123", "7005=27.6", "7006=251231",
    "7007=251231", "7007=251231260101", "7007=25123126", "7008=COD", "7009=GEAR", "7010=01", "7011=251231",
    "7011=2512311200", "7011=25123112", "7020=L", "7020=L&416=9521321000018", "7021=F", "7021=F&7022=R", "7022=R",
    "7023=9521ABC", "7023=952ABC", "7030=276A", "7030=999A", "7039=998A", "7040=1ABC", "7041=CT", "710=PZN",
    "717=SRN", "718=X", "7230=EMA", "7240=PROT", "7241=01&8017=952132100000000014", "7241=01&8018=106141412345678908",
    "7241=11&8018=106141412345678908", "7241=80&8018=106141412345678908", "7250=19720229&8018=106141412345678908",
    "7250=19730229&8018=106141412345678908", "7250=19000229&8018=106141412345678908",
    "7251=200002292359&8018=106141412345678908", "7252=9&8018=106141412345678908", "7252=3&8018=106141412345678908",
    "7253=Smith&8018=106141412345678908", "7253=Smith&7256=John&8018=106141412345678908",
    "7258=1/2&7259=Baby&8018=106141412345678908", "7258=2/1&7259=Baby&8018=106141412345678908",
    "7258=0/1&7259=Baby&8018=106141412345678908", "7258=1/2&8018=106141412345678908", "8001=12345678912311",
    "8001=00005678912311", "8001=12345678912321", "8001=1234567891231", "8002=CMT", "8003=09521321000018ABC",
    "8003=19521321000018", "8003=09521321000018", "8004=9521A", "8004=95", "8005=000123", "8006=095212345432130102",
    "8007=DE89370400440532013000&415=9521321000018&8020=R", "8007=DE89370400440532013000", "8008=25123112",
    "8008=2512311259", "8008=251231125959", "8008=2512312400", "8008=251231126", "8009=OPT", "8010=9521-A/B",
    "8010=9521a", "8011=1", "8012=V1", "8013=1987654Ad4X4bL5ttr2310c2K", "8013=1987654Ad4X4bL5ttr2310c2L", "8013=22",
    "8014=9521A", "8017=952132100000000014", "8018=106141412345678908",
    "8018=106141412345678908&8017=106141412345678908", "8019=1", "8020=R", "8026=095212345432130102", "8030=abc_-09",
    "8030=ab%3D", "8030=abcde%3D", "8030=abcd%3D%3D", "8030=a+b", "8030=abc&253=9521321000018",
    "8030=abc&253=9521321000018A", "8030=abc&8003=09521321000018", "8040=123456789012345",
    "8110=106141416543213150110120", "8110=106141416543213150110120303000000", "8110=1061414165432131501101201930",
    "8110=106141416543213150110120303251231", "8110=106141416543213150110120325123142512315012345692110",
    "8110=1061414165432131501101203251231425123150123456", "8110=0123456123456110011001",
    "8110=012345612345611001100061234567", "8110=106141416543213150110120111503009",
    "8110=10614141654321315011012011150300901234562115030090123456", "8110=10614141654321315011012032512314260101",
    "8110=106141416543213150110120920010", "8110=10614141654321315011012092011","8110=106141416543213150110120111503000123456", "8110=106141416543213150110120111503000123456215030099010",
    "8110=10614141654321315011012021503009", "8110=1061414165432131501101209201",
    "8110=10614141654321315011012092010", "8110=10614141654321315011012096211", "8110=10614141654321315011012093010",
    "8110=1061414165432131501101201115030001234563251231425010155123456789016112345679010",
    "8111=0010",
    "8112=001234561234560123456", "8112=0012345612345601234567", "8112=1612345678901212345691234567890123456",
    "8112=201234561234560123456", "8200=http", "90=INT", "91=A", "99=Z", "98=%25", "97=a+b", "96=%2B", "95=",
    "94=%00", "01=09521234543213", "10=LOT", "21=S", "22=V", "235=T", "10=LOT%20", "1=x", "012=x", "123456789=x",
    "89=x", "=x", "9x=1", "%31%30=x", "linkType=gs1:pip", "utm_source=a%20b", "a", "a=", "", "context=de&x", "4=",
    "3100", "11", "s%C3%A9",
];

/// Segments behind a GTIN that are no qualifiers of it.
#[rustfmt::skip]
const OTHER_PAIRS: &[&str] = &[
    "/11/251231", "/99/x", "/254/x", "/7040/1ABC", "/01", "/x", "/21", "/89/x", "/1/x", "/12345/x", "//", "/10//21/x",
    "/lot/x", "/ser/x", "/414/9521321000018", "/00/106141412345678908", "/8006/095212345432130102",
    "/01/09521234543213", "/21/a/21/b", "/235/a/235/b", "/10/a/22/b", "/21/a/10/b", "/235/a/10/b", "/22/a/235/b",
    "/10/a/10/b/21/c",
];

/// What may stand before the key.
#[rustfmt::skip]
const STEMS: &[&str] = &[
    "/a", "/some/path", "/01", "/21/x", "/01/09528765123457", "/10", "//", "/a%20b", "/414/9521321000018", "/é",
    "/gtin",
];

/// Paths that have another key, or none.
#[rustfmt::skip]
const OTHER_PATHS: &[&str] = &[
    "/", "/abc", "/a/b", "/01", "/01/", "/01/x", "/21/x", "/414/9521321000018", "/414/9521321000018/254/x", "/a/01",
    "/00/106141412345678908", "/8004/9521A/7040/1ABC", "/253/9521321000018", "/gtin/09528765123457", "/01/a/b",
    "/99/x", "/09528765123457", "/01/09528765123457x", "/0109528765123457", "/01/0952876512345", "/235/x/21/y", "//",
    "/01//", "/8006/x",
];

/// Random numbers: the same from the same seed, on every machine.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Path and query (with its `?`, or empty) of one URI.
pub(super) fn uri(random: &mut Random) -> String {
    let mut path = if random.one_in(25) {
        random.pick(OTHER_PATHS).to_owned()
    } else {
        let mut path = if random.one_in(8) { random.pick(STEMS).to_owned() } else { String::new() };
        path.push_str("/01/");
        path.push_str(&gtin(random));
        path.push_str(&qualifiers(random));
        path
    };
    if random.one_in(30) {
        path.push('/');
    }
    if random.one_in(25) {
        spoil(random, &mut path);
    }
    path + &query(random)
}

fn gtin(random: &mut Random) -> String {
    let length = if random.one_in(20) { [0, 1, 7, 8, 11, 12, 13, 15, 18][random.below(9)] } else { 14 };
    let zeros = if random.one_in(20) { [2, 4, 5, 6, 7, 8, 9, 14][random.below(8)] } else { 0 };
    let mut digits: Vec<u8> =
        (0..length).map(|nth| if nth < zeros { b'0' } else { b'0' + random.below(10) as u8 }).collect();
    if let Some((last, rest)) = digits.split_last_mut() {
        let weighted = rest.iter().rev().zip([3_u32, 1].into_iter().cycle());
        let sum: u32 = weighted.map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
        *last = b'0' + ((10 - sum % 10) % 10) as u8;
        if random.one_in(20) {
            *last = b'0' + random.below(10) as u8;
        }
    }
    let mut text = String::from_utf8(digits).unwrap();
    if random.one_in(40) && !text.is_empty() {
        let at = random.below(text.len());
        let byte = text.as_bytes()[at];
        text.replace_range(at..=at, &format!("%{byte:02X}"));
    }
    text
}

fn qualifiers(random: &mut Random) -> String {
    if random.one_in(15) {
        return random.pick(OTHER_PAIRS).to_owned();
    }
    let mut chosen: Vec<&str> = match random.below(10) {
        0 | 1 => vec![],
        2 | 3 => vec!["21"],
        4 => vec!["10", "21"],
        5 => vec!["22", "10", "21"],
        6 => vec!["22", "10"],
        7 => vec!["235"],
        8 => vec!["10"],
        _ => vec!["22", "21"],
    };
    if random.one_in(20) {
        chosen.insert(random.below(chosen.len() + 1), random.pick(&["22", "10", "21", "235"]));
    }
    chosen.iter().map(|ai| format!("/{ai}/{}", value(random, if *ai == "235" { 28 } else { 20 }))).collect()
}

/// A value of at most so many characters, and sometimes of one more.
fn value(random: &mut Random, most: usize) -> String {
    let length = match random.below(30) {
        0 => 0,
        1 => most + 1,
        2 => most,
        _ => 1 + random.below(most),
    };
    let plain = random.one_in(2);
    let mut text = String::new();
    for _ in 0..length {
        let byte = if plain { CSET82[14 + random.below(10)] } else { CSET82[random.below(CSET82.len())] };
        let is_unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let is_legal = matches!(byte, b'!' | b'&' | b'\'' | b'('..=b',' | b':' | b';' | b'=');
        if is_unreserved && !random.one_in(30) || is_legal && random.one_in(2) {
            text.push(char::from(byte));
        } else if random.one_in(2) {
            text += &format!("%{byte:02X}");
        } else {
            text += &format!("%{byte:02x}");
        }
    }
    if random.one_in(30) {
        spoil(random, &mut text);
    }
    text
}

fn query(random: &mut Random) -> String {
    let count = match random.below(10) {
        0..=4 => return String::new(),
        5 | 6 => 1,
        7 | 8 => 2,
        _ => random.below(6),
    };
    let mut parameters: Vec<String> = (0..count).map(|_| random.pick(ATTRIBUTES).to_owned()).collect();
    for parameter in &mut parameters {
        match random.below(12) {
            0 => spoil(random, parameter),
            // Another digit or letter somewhere, which may be in a name.
            1 if !parameter.is_empty() => {
                let at = random.below(parameter.len());
                if parameter.as_bytes()[at].is_ascii_alphanumeric() {
                    let other = CSET82[14 + random.below(10)];
                    parameter.replace_range(at..=at, &char::from(other).to_string());
                }
            }
            2 => parameter.truncate(parameter.len().saturating_sub(1)),
            3 => parameter.push(char::from(CSET82[14 + random.below(10)])),
            _ => {}
        }
    }
    format!("?{}", parameters.join("&"))
}

/// Puts in something strange, but not at the begin: a path begins with `/`.
fn spoil(random: &mut Random, text: &mut String) {
    let at = 1 + random.below(text.len() + 1);
    if text.is_char_boundary(at) {
        text.insert_str(at, random.pick(STRANGE));
    }
}
