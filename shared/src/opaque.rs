//! Types whose fields nobody wants to read in a log.

/// Implements `Debug` by the name of the type alone.
#[macro_export]
macro_rules! opaque {
    ($name:ident) => {
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}
