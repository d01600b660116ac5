-- A file of consents, made by PostgreSQL alone: rows, bytes and SHA-256 of the whole file. No field needs quotes.
WITH rows AS (
    SELECT number, channel, number::text || ',' || channel || ',' || given_on::text || E'\n' AS line
    FROM consents WHERE tenant_id = :'tenant' AND :'country' = 'all'),
file AS (
    SELECT count(*) AS rows,
           convert_to(E'number,channel,given_on\n' || coalesce(string_agg(line, '' ORDER BY number, channel), ''), 'UTF8') AS bytes
    FROM rows)
SELECT rows, length(bytes), encode(sha256(bytes), 'hex') FROM file;
