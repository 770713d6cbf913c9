//! What every store of scans passes on to functions of its own, which have the same names in each.

/// These functions of the trait `ScanStore`.
macro_rules! passed_on {
    () => {
        fn append<'a>(&'a self, batch: &'a Batch<'a>) -> BoxFuture<'a, Result<Appended, StoreError>> {
            Box::pin(self.append_batch(batch))
        }

        fn page<'a>(
            &'a self,
            selection: &'a Selection<'a>,
        ) -> BoxFuture<'a, Result<Vec<Action>, StoreError>> {
            Box::pin(self.list(selection))
        }

        fn find_many<'a>(
            &'a self,
            account: AccountId,
            ids: &'a [ActionId],
        ) -> BoxFuture<'a, Result<Vec<Action>, StoreError>> {
            Box::pin(self.find_all(account, ids))
        }

        fn find_first_since(
            &self,
            account: AccountId,
            since: UnixMillis,
        ) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>> {
            Box::pin(self.first_since(account, since))
        }

        fn count<'a>(
            &'a self,
            count: &'a Count,
        ) -> BoxFuture<'a, Result<Vec<(UnixMillis, u64)>, StoreError>> {
            Box::pin(self.count_pieces(count))
        }

        fn count_since(
            &self,
            account: AccountId,
            since: UnixMillis,
            most: u64,
        ) -> BoxFuture<'_, Result<u64, StoreError>> {
            Box::pin(self.count_some(account, since, most))
        }

        fn delete<'a>(
            &'a self,
            account: AccountId,
            ids: &'a [ActionId],
        ) -> BoxFuture<'a, Result<u64, StoreError>> {
            Box::pin(self.delete_all(account, ids))
        }

        fn seek<'a>(
            &'a self,
            account: AccountId,
            sought: &'a Sought,
            after: Option<ScanPosition>,
        ) -> BoxFuture<'a, Result<Sighted, StoreError>> {
            Box::pin(self.seek_some(account, sought, after))
        }

        fn drop_before(&self, before: UnixMillis) -> BoxFuture<'_, Result<Option<Month>, StoreError>> {
            Box::pin(self.drop_oldest(before))
        }

        fn describe(&self) -> BoxFuture<'_, Result<Description, StoreError>> {
            Box::pin(self.description())
        }
    };
}
pub(super) use passed_on;
