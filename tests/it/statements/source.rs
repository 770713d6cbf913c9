//! Reads constants and macros out of Rust sources, as far as the store uses them.
//!
//! Understood are string literals, `concat!`, macros of one arm with expressions and names of macros as parameters,
//! structures and `Some(…)`; lists and pairs hold none; anything else in a constant that holds SQL is an error, so that nothing is left out.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

/// A statement with the path of names that leads to it.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) name: String,
    pub(super) sql: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Text(String),
    Word(String),
    /// `$name` in a macro.
    Hole(String),
    Mark(char),
}

#[derive(Debug, Clone)]
enum Value {
    Text(String),
    /// Named parts of a structure.
    Parts(Vec<(String, Value)>),
    /// A name that stands in a file: of a macro, or of another constant.
    Name(String, String),
    /// Something without SQL.
    Other,
}

/// A macro of one arm.
#[derive(Debug, Clone)]
struct Macro {
    holes: Vec<String>,
    body: Vec<Token>,
}

/// The sources read so far.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// By file and name; those that are not in the file itself come from another one.
    macros: HashMap<(String, String), Macro>,
    /// File, name and what stands behind the `=`.
    constants: Vec<(String, String, Vec<Token>)>,
}

/// Whether a text begins a statement.
pub(super) fn is_sql(text: &str) -> bool {
    ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "].iter().any(|word| text.trim().starts_with(word))
}

/// Every `.rs` file below a folder.
pub(super) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The string literals of a source, without those of its tests.
pub(super) fn literals(source: &str) -> Result<Vec<String>> {
    let texts = tokens(source)?.into_iter().filter_map(|token| match token {
        Token::Text(text) => Some(text),
        Token::Word(_) | Token::Hole(_) | Token::Mark(_) => None,
    });
    Ok(texts.collect())
}

impl Sources {
    /// Reads a file's macros and constants.
    pub(super) fn read(&mut self, file: &str, source: &str) -> Result<()> {
        let tokens = tokens(source)?;
        let word = |at: usize, word: &str| tokens.get(at) == Some(&Token::Word(word.to_owned()));
        for at in 0..tokens.len() {
            if word(at, "macro_rules") {
                let Some(Token::Word(name)) = tokens.get(at + 2) else { bail!("a macro without a name") };
                if let Some(found) = read_macro(&tokens[at + 3..]) {
                    self.macros.insert((file.to_owned(), name.clone()), found);
                }
            }
            // `const NAME: TYPE = …;` and not `const fn`.
            if word(at, "const")
                && let Some(Token::Word(name)) = tokens.get(at + 1)
                && tokens.get(at + 2) == Some(&Token::Mark(':'))
            {
                let rest = &tokens[at + 3..];
                let end = rest.iter().position(|token| *token == Token::Mark(';')).context("no end")?;
                // A trait may ask for a constant without giving it.
                if let Some(begin) = rest[..end].iter().position(|token| *token == Token::Mark('=')) {
                    self.constants.push((file.to_owned(), name.clone(), rest[begin + 1..end].to_vec()));
                }
            }
        }
        Ok(())
    }

    /// Every statement of the constants.
    pub(super) fn statements(&self) -> Result<Vec<Statement>> {
        let mut found = Vec::new();
        for (file, name, tokens) in &self.constants {
            let path = format!("{file}::{name}");
            let value = self.value(file, tokens, &HashMap::new()).with_context(|| path.clone());
            match value {
                Ok(value) => collect(&path, &value, &mut found),
                // A number or a duration; `every_statement_is_listed` proves that it was no SQL.
                Err(_) if !tokens.iter().any(|token| matches!(token, Token::Text(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Evaluates an expression that stands in `file`.
    fn value(&self, file: &str, tokens: &[Token], holes: &HashMap<String, Value>) -> Result<Value> {
        match tokens {
            [Token::Text(text)] => Ok(Value::Text(text.clone())),
            [Token::Hole(name)] => holes.get(name).cloned().with_context(|| format!("${name}")),
            [Token::Word(name), Token::Mark('!'), Token::Mark('('), inner @ .., Token::Mark(')')] => {
                self.call(file, name, self.values(file, inner, holes)?)
            }
            // A macro that is a parameter.
            [Token::Hole(hole), Token::Mark('!'), Token::Mark('('), inner @ .., Token::Mark(')')] => {
                let Some(Value::Name(home, name)) = holes.get(hole) else { bail!("${hole} is no macro") };
                self.call(home, name, self.values(file, inner, holes)?)
            }
            // `$crate::a!()`: the path says nothing here.
            [Token::Hole(hole), Token::Mark(':'), Token::Mark(':'), rest @ ..] if hole == "crate" => {
                self.value(file, rest, holes)
            }
            [Token::Word(some), Token::Mark('('), inner @ .., Token::Mark(')')] if some == "Some" => {
                self.value(file, inner, holes)
            }
            [.., Token::Mark('}')] => {
                let begin = tokens.iter().position(|token| *token == Token::Mark('{')).context("{")?;
                let mut parts = Vec::new();
                for field in split(&tokens[begin + 1..tokens.len() - 1]) {
                    // The rest of another constant, which is evaluated by itself.
                    if let [Token::Mark('.'), Token::Mark('.'), Token::Word(_)] = field {
                        continue;
                    }
                    let [Token::Word(name), Token::Mark(':'), rest @ ..] = field else {
                        bail!("a field {field:?}")
                    };
                    parts.push((name.clone(), self.value(file, rest, holes)?));
                }
                Ok(Value::Parts(parts))
            }
            // A list or a pair: what begins a statement there is missed by `every_statement_is_listed`.
            [Token::Mark('&'), Token::Mark('['), ..] | [Token::Mark('('), ..] => Ok(Value::Other),
            // A macro as a parameter, another constant, or `None`.
            [Token::Word(name)] => Ok(Value::Name(file.to_owned(), name.clone())),
            _ => bail!("not understood: {tokens:?}"),
        }
    }

    /// Evaluates the arguments of a macro.
    fn values(&self, file: &str, tokens: &[Token], holes: &HashMap<String, Value>) -> Result<Vec<Value>> {
        split(tokens).into_iter().map(|argument| self.value(file, argument, holes)).collect()
    }

    fn call(&self, file: &str, name: &str, arguments: Vec<Value>) -> Result<Value> {
        if name == "concat" {
            let mut text = String::new();
            for argument in arguments {
                let Value::Text(part) = argument else { bail!("concat! of {argument:?}") };
                text.push_str(&part);
            }
            return Ok(Value::Text(text));
        }
        let own = self.macros.get_key_value(&(file.to_owned(), name.to_owned()));
        let ((home, _), found) = own
            .or_else(|| self.macros.iter().find(|((_, other), _)| other == name))
            .with_context(|| format!("no macro {name}"))?;
        ensure!(found.holes.len() == arguments.len(), "{name}! has other parameters");
        let holes = found.holes.iter().cloned().zip(arguments).collect();
        self.value(home, &found.body, &holes)
    }
}

fn collect(path: &str, value: &Value, found: &mut Vec<Statement>) {
    match value {
        Value::Text(sql) if is_sql(sql) => {
            found.push(Statement { name: path.to_owned(), sql: sql.clone() });
        }
        Value::Parts(parts) => {
            for (name, value) in parts {
                collect(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Text(_) | Value::Name(..) | Value::Other => {}
    }
}

/// `{ ($a:expr, $b:expr) => { body }; }`; `None` for one that is no constant expression.
fn read_macro(tokens: &[Token]) -> Option<Macro> {
    let begin = tokens.iter().position(|token| *token == Token::Mark('('))?;
    let close = begin + closing(&tokens[begin..])?;
    let holes = tokens[begin..close]
        .iter()
        .filter_map(|token| match token {
            Token::Hole(name) => Some(name.clone()),
            Token::Text(_) | Token::Word(_) | Token::Mark(_) => None,
        })
        .collect();
    let rest = tokens.get(close + 1..)?;
    let [Token::Mark('='), Token::Mark('>'), Token::Mark('{'), ..] = rest else { return None };
    let end = 2 + closing(&rest[2..])?;
    // `$crate::a::B { … }`: the path says nothing here.
    Some(Macro { holes, body: rest[3..end].to_vec() })
}

/// Index of the bracket that closes the first one.
fn closing(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('(' | '{' | '[') => depth += 1,
            Token::Mark(')' | '}' | ']') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            Token::Text(_) | Token::Word(_) | Token::Hole(_) | Token::Mark(_) => {}
        }
    }
    None
}

/// Parts between the outer commas.
fn split(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('(' | '{' | '[') => depth += 1,
            Token::Mark(')' | '}' | ']') => depth = depth.saturating_sub(1),
            Token::Mark(',') if depth == 0 => {
                parts.push(&tokens[begin..at]);
                begin = at + 1;
            }
            Token::Text(_) | Token::Word(_) | Token::Hole(_) | Token::Mark(_) => {}
        }
    }
    parts.push(&tokens[begin..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The tokens of a source up to its tests; comments are left out.
fn tokens(source: &str) -> Result<Vec<Token>> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, behind)| behind);
        } else if first == '"' {
            let (text, behind) = literal(&rest[1..])?;
            found.push(Token::Text(text));
            rest = behind;
        } else if first == '\'' {
            rest = behind_quote(rest);
        } else if first == '$' || first.is_alphanumeric() || first == '_' {
            let body = &rest[usize::from(first == '$')..];
            let end = body.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(body.len());
            let name = body[..end].to_owned();
            rest = &body[end..];
            found.push(if first == '$' { Token::Hole(name) } else { Token::Word(name) });
        } else {
            if !first.is_whitespace() {
                found.push(Token::Mark(first));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(found)
}

/// A string literal behind its first quote: its text, and what comes after it.
fn literal(source: &str) -> Result<(String, &str)> {
    let mut text = String::new();
    let mut rest = source;
    loop {
        let next = rest.chars().next().context("a literal without end")?;
        rest = &rest[next.len_utf8()..];
        match next {
            '"' => return Ok((text, rest)),
            '\\' => {
                let escaped = rest.chars().next().context("a literal without end")?;
                rest = &rest[escaped.len_utf8()..];
                match escaped {
                    '\n' => rest = rest.trim_start(),
                    'n' => text.push('\n'),
                    other => text.push(other),
                }
            }
            other => text.push(other),
        }
    }
}

/// What comes behind a character literal, or behind the mark of a lifetime.
fn behind_quote(source: &str) -> &str {
    let mut chars = source.char_indices().skip(1);
    let end = match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => source[3..].find('\'').map(|at| at + 4),
        (Some(_), Some((at, '\''))) => Some(at + 1),
        _ => None,
    };
    &source[end.unwrap_or(1)..]
}
