//! Enums whose variants are words, as columns, settings and JSON hold them.

/// Declares an enum by its words; behind `else` is the error of its `FromStr`, for a text that is none of them.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$of:meta])* $variant:ident = $word:literal,)+
    } $(else $error:tt)?) => {
        $(#[$about])*
        $vis enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// Each of them, in the order of their declaration.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        $(impl ::std::str::FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or($error)
            }
        })?
    };
}
