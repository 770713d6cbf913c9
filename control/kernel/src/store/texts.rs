//! A list of texts as a parameter or column: `TEXT[]` on Postgres, a JSON array on SQLite.

use sqlx::{
    Encode, Postgres, Sqlite, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgTypeInfo},
    sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo},
    types::Json,
};

/// Texts, such as the facets of a row or the ids that a list is narrowed to.
#[derive(Debug, Clone)]
pub struct Texts(pub(super) Vec<String>);

impl Type<Postgres> for Texts {
    fn type_info() -> PgTypeInfo {
        <Vec<String> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for Texts {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode_by_ref(&self.0, buffer)
    }
}

impl Type<Sqlite> for Texts {
    fn type_info() -> SqliteTypeInfo {
        <str as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for Texts {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Sqlite>::encode_by_ref(&Json(&self.0), buffer)
    }
}
