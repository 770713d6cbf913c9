-- From here on `secrets.value` is encrypted under a key outside of the database. Each start encrypts values that are not
-- (`control/secrets`), since only the process has the key. A release before this one would take the 65 bytes for a
-- secret of a wrong length; `compatible_from` refuses it earlier.
SELECT 1;
