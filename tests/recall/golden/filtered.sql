WITH wanted AS MATERIALIZED (
    SELECT found.*
    FROM (
        SELECT "tree_block"."id" AS "pk",
            "tree_block"."created" AS "created",
            (tree_block.words) AS "words"
        FROM "tree_block_of_tenant" "tree_block"
        INNER JOIN "tree_file" ON (
            "tree_block"."file_id" = "tree_file"."id"
                AND ("tree_file"."tenant_id" = ("tree_block"."tenant_id"))
        )
        WHERE (
            "tree_block"."tenant_id" = %(wanted_0)s
                AND "tree_block"."tree_id" = %(wanted_1)s
                AND "tree_block"."removed_in" IS NULL
                AND ("tree_block"."expires_at" IS NULL OR "tree_block"."expires_at" > %(wanted_2)s)
                AND "tree_block"."kind" = %(wanted_3)s
                AND "tree_block"."tag_keys" @> (ARRAY[%(wanted_4)s])::text[]
                AND "tree_block"."source" = %(wanted_5)s
                AND "tree_block"."superseded_by" = %(wanted_6)s
                AND (
                    ("tree_file"."path" > %(wanted_7)s AND "tree_file"."path" < %(wanted_8)s)
                        OR "tree_file"."path" = %(wanted_9)s
                )
        )
    ) AS found (id, created, words)
),
size AS MATERIALIZED (
    SELECT count(*)::float AS n, greatest(avg(words), 1)::float AS mean
    FROM wanted
),
sample AS MATERIALIZED (SELECT id FROM wanted ORDER BY created DESC, id DESC LIMIT 256),
term AS MATERIALIZED (
    SELECT lexeme,
        ('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''')::tsquery AS query
    FROM unnest(
        tsvector_to_array(
            to_tsvector(%(language)s::regconfig, %(words)s) || array_to_tsvector(%(exact)s::text[])
        )
    ) AS lexeme
),
asked AS MATERIALIZED (SELECT string_agg(query::text, ' | ')::tsquery AS any_of FROM term),
candidate AS MATERIALIZED (
    SELECT b.id, b.words, b.tsv
    FROM tree_block_of_tenant b
    WHERE b.tenant_id = %(tenant)s
        AND b.tree_id = %(tree)s
        AND b.kind = 'entry'
        AND b.removed_in IS NULL
        AND b.tsv @@ (SELECT any_of FROM asked)
        AND (b.id IN (SELECT id FROM wanted)) IS TRUE
),
hit AS MATERIALIZED (
    SELECT id,
        words,
        term.lexeme,
        greatest(
            round(1 / greatest(1.644934 * (1 - ts_rank('{1,1,1,1}', tsv, term.query)), 1e-4) - 0.5), 1
        )::float AS tf
    FROM candidate
    JOIN term ON tsv @@ term.query
),
rarity AS MATERIALIZED (SELECT lexeme, count(*)::float AS df FROM hit GROUP BY lexeme),
lexical AS MATERIALIZED (
    SELECT id,
        sum(
            ln(1 + (n - df + 0.5) / (df + 0.5)) * tf * 2.2 / (
                tf + 1.2 * (0.25 + 0.75 * words / mean)
            )
        ) AS bm25
    FROM hit
    JOIN rarity USING (lexeme)
    CROSS JOIN size
    GROUP BY id
    ORDER BY bm25 DESC, id DESC
    LIMIT 300
),
question AS MATERIALIZED (SELECT %(meaning)s::halfvec AS meaning),
nearest AS MATERIALIZED (
    SELECT id, max(similarity) AS similarity, count(*) AS parts
    FROM (
        SELECT wanted.id, -(v.embedding <#> (SELECT meaning FROM question)) AS similarity
        FROM recall_vector v
        JOIN wanted ON wanted.id = v.block_id
        WHERE v.tenant_id = %(tenant)s AND v.tree_id = %(tree)s AND v.model = %(model)s
        ORDER BY similarity DESC, id DESC
        LIMIT 300
    ) AS parts
    GROUP BY id
),
meant AS MATERIALIZED (
    SELECT id, similarity
    FROM nearest
    UNION ALL
    SELECT id,
        (
            SELECT max(-(v.embedding <#> (SELECT meaning FROM question)))
            FROM recall_vector v
            WHERE v.tenant_id = %(tenant)s
                AND v.tree_id = %(tree)s
                AND v.block_id = lexical.id
                AND v.model = %(model)s
        )
    FROM lexical
    WHERE id NOT IN (SELECT id FROM nearest)
),
usual AS MATERIALIZED (
    SELECT avg(
        (
            SELECT max(-(v.embedding <#> (SELECT meaning FROM question)))
            FROM recall_vector v
            WHERE v.tenant_id = %(tenant)s
                AND v.tree_id = %(tree)s
                AND v.block_id = sample.id
                AND v.model = %(model)s
        )
    ) AS similarity
    FROM sample
),
best AS MATERIALIZED (
    SELECT (SELECT max(bm25) FROM lexical) AS bm25,
        (SELECT max(similarity) FROM meant) AS similarity,
        (SELECT similarity FROM usual) AS usual
),
fused AS MATERIALIZED (
    SELECT id,
        lexical.bm25,
        meant.similarity,
        coalesce(lexical.bm25 / best.bm25, 0) + 0.6 * CASE
            WHEN meant.similarity IS NULL OR meant.similarity <= 0 THEN 0
            WHEN best.similarity > best.usual THEN greatest(meant.similarity - best.usual, 0) / (
                best.similarity - best.usual
            )
            -- Of one entry, or of several that are equally near, none is below the best.
            ELSE 1
        END AS score
    FROM lexical
    FULL JOIN meant USING (id)
    CROSS JOIN best
),
top AS MATERIALIZED (
    SELECT b.id, b.file_id, b.position, score
    FROM (SELECT id, score FROM fused WHERE score > 0 ORDER BY score DESC, id DESC LIMIT 100) AS best_of
    JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.id = best_of.id
),
near AS MATERIALIZED (
    SELECT beside.id, sum(score) AS score
    FROM top
    CROSS JOIN LATERAL (
        (
            SELECT id
            FROM tree_block b
            WHERE b.tenant_id = %(tenant)s
                AND b.file_id = top.file_id
                AND b.position < top.position
                AND b.kind = 'entry'
                AND (b.expires_at IS NULL OR b.expires_at > %(at)s)
                AND b.removed_in IS NULL
                AND b.superseded_by = ''
            ORDER BY position DESC
            LIMIT 1
        )
        UNION ALL (
            SELECT id
            FROM tree_block b
            WHERE b.tenant_id = %(tenant)s
                AND b.file_id = top.file_id
                AND b.position > top.position
                AND b.kind = 'entry'
                AND (b.expires_at IS NULL OR b.expires_at > %(at)s)
                AND b.removed_in IS NULL
                AND b.superseded_by = ''
            ORDER BY position
            LIMIT 1
        )
    ) AS beside
    GROUP BY beside.id
)
SELECT ranked.*,
    (SELECT array_agg(lexeme) FROM term WHERE lexeme NOT IN (SELECT lexeme FROM rarity)),
    (SELECT sum(parts)::int FROM nearest),
    b.created,
    b.confidence,
    b.tag_keys,
    b.summary,
    b.category,
    left(split_part(left(b.search_text, 400), chr(10), 2 - (b.summary = '')::int), 100),
    b.claimed
FROM (
    -- Grouped and not joined: the planner, who knows no sizes here, would go through all neighbours for every row.
    SELECT id, sum(score + beside) AS total, coalesce(max(bm25), 0), max(similarity), sum(beside)
    FROM (
        SELECT id, score, bm25, similarity, 0 AS beside
        FROM fused
        WHERE score > 0
        UNION ALL
        SELECT id, 0, NULL, NULL, 0.3 * score
        FROM near
    ) AS shares
    GROUP BY id
    HAVING max(score) > 0
    ORDER BY total DESC, id DESC
    LIMIT 200
) AS ranked
JOIN tree_block b ON b.tenant_id = %(tenant)s AND b.id = ranked.id
ORDER BY total DESC, ranked.id DESC
