"""Statements of SQL that are answered, each with the statistics that answer it; `name = text` is derived first."""

from __future__ import annotations

from collections.abc import Iterator

PEOPLE = """
SELECT COUNT(*) FROM people
-> count()

SELECT count(*) AS n FROM "people"
-> count()

SELECT COUNT(1) FROM people
-> count()

SELECT COUNT(income) FROM people
-> count(where='not income is null')

SELECT COUNT(*) AS a, COUNT(*) AS b FROM people
-> count()

SELECT sex, COUNT(*) FROM people GROUP BY sex
-> count(by='sex')

SELECT sex, COUNT(*) FROM people GROUP BY 1
-> count(by='sex')

SELECT sex AS s, COUNT(*) FROM people GROUP BY s
-> count(by='sex')

SELECT sex, COUNT(*) FROM people GROUP BY ALL
-> count(by='sex')

SELECT sex, region, COUNT(*) FROM people GROUP BY sex, region
-> count(by=['sex', 'region'])

SELECT COUNT(*) FROM people GROUP BY sex
-> count(by='sex')

SELECT sex, COUNT(*), AVG(income) FROM people WHERE age >= 18 GROUP BY sex
-> count(where='age >= 18', by='sex')
-> mean('income', where='age >= 18', by='sex')

SELECT AVG(income) FROM people
-> mean('income')

SELECT avg(p.income) FROM people AS p WHERE p.sex = 'F'
-> mean('income', where="sex = 'F'")

SELECT AVG(people.age) FROM people
-> mean('age')

SELECT SUM(income) FROM people
-> sum('income')

SELECT SUM(children), SUM(children) FROM people
-> sum('children')

SELECT STDDEV_POP(age), VAR_POP(age) FROM people
-> std('age')
-> variance('age')

SELECT STDDEV(age), VARIANCE(age), STDDEV_SAMP(age), VAR_SAMP(age) FROM people
-> std('age')
-> variance('age')

SELECT MEDIAN(income) FROM people
-> quantile('income', 0.5)

SELECT region, MEDIAN(age) FROM people GROUP BY region
-> quantile('age', 0.5, by='region')

SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income) FROM people
-> quantile('income', 0.9)

SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income DESC) FROM people
-> quantile('income', 0.1)

SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age) FROM people
-> quantile('age', 0.25)

SELECT QUANTILE_CONT(age, 0.25), QUANTILE(age, 0.75), APPROX_QUANTILE(age, 0.5) FROM people
-> quantile('age', 0.25)
-> quantile('age', 0.75)
-> quantile('age', 0.5)

SELECT COUNT(DISTINCT region) FROM people
-> count_distinct('region')

SELECT APPROX_COUNT_DISTINCT(children) FROM people
-> count_distinct('children')

SELECT COUNT(DISTINCT age // 10) FROM people
-> age // 10 = age // 10
-> count_distinct('age // 10')

SELECT REGR_SLOPE(income, age) FROM people
-> linear_regression('income', ['age'])

SELECT sex, REGR_SLOPE(income, age) AS slope, REGR_INTERCEPT(income, age) AS start FROM people GROUP BY sex
-> linear_regression('income', ['age'], by='sex')

SELECT COUNT(*) FILTER (WHERE smoker) FROM people
-> count(where='smoker')

SELECT sex, AVG(age) FILTER (WHERE income > 50000) FROM people GROUP BY sex
-> mean('age', where='income > 50000', by='sex')

SELECT COUNT_IF(smoker) FROM people
-> count(where='smoker')

SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) FROM people
-> count(where='smoker')

SELECT SUM(CASE WHEN smoker THEN income END) FROM people WHERE sex = 'M'
-> sum('income', where="sex = 'M' and smoker")

SELECT COUNT(CASE WHEN age >= 18 THEN 1 END) FROM people
-> count(where='age >= 18')

SELECT COUNT(CASE WHEN smoker THEN 1 ELSE 0 END) FROM people
-> count(where='not case when smoker then 1 else 0 end is null')

SELECT COUNT(CASE WHEN smoker THEN income END) FROM people
-> count(where='not case when smoker then income else null end is null')

SELECT AVG(CASE WHEN smoker THEN 1.0 ELSE 0.0 END) AS share FROM people
-> case when smoker then 1.0 else 0.0 end = case when smoker then 1.0 else 0.0 end
-> mean('case when smoker then 1.0 else 0.0 end')

SELECT AVG(smoker) FROM people
-> mean('smoker')

SELECT COUNT(*) FROM people WHERE sex = 'F' AND age BETWEEN 18 AND 64
-> count(where="sex = 'F' and age between 18 and 64")

SELECT COUNT(*) FROM people WHERE region IN ('north', 'east') OR NOT smoker
-> count(where="region in ('north', 'east') or not smoker")

SELECT COUNT(*) FROM people WHERE region NOT IN ('north')
-> count(where="not region in ('north')")

SELECT COUNT(*) FROM people WHERE region LIKE 'n%' AND region NOT LIKE '%z'
-> count(where="region like 'n%' and not region like '%z'")

SELECT COUNT(*) FROM people WHERE income IS NULL
-> count(where='income is null')

SELECT COUNT(*) FROM people WHERE income IS NOT NULL AND weight IS NOT NULL
-> count(where='not income is null and not weight is null')

SELECT COUNT(*) FROM people WHERE smoker IS TRUE
-> count(where='coalesce(smoker, false)')

SELECT COUNT(*) FROM people WHERE smoker IS NOT FALSE
-> count(where='not not coalesce(smoker, true)')

SELECT COUNT(*) FROM people WHERE age <> 30 AND age != 31 AND age == 32
-> count(where='age <> 30 and age <> 31 and age = 32')

SELECT COUNT(*) FROM people WHERE NOT (age < 18 OR age > 65)
-> count(where='not (age < 18 or age > 65)')

SELECT COUNT(*) FROM people WHERE COALESCE(income, 0) > 1000
-> count(where='coalesce(income, 0) > 1000')

SELECT COUNT(*) FROM people WHERE CAST(income AS INTEGER) % 2 = 0
-> count(where='cast(income as integer) % 2 = 0')

SELECT COUNT(*) FROM people WHERE income::INT % 2 = 1
-> count(where='cast(income as integer) % 2 = 1')

SELECT COUNT(*) FROM people WHERE weight / (height * height) < 25
-> count(where='weight / (height * height) < 25')

SELECT COUNT(*) FROM people WHERE POWER(height, 2) > 3 AND height ^ 2 < 4
-> count(where='power(height, 2) > 3 and power(height, 2) < 4')

SELECT COUNT(*) FROM people WHERE ABS(age - 40) <= 10 AND -age < -5
-> count(where='abs(age - 40) <= 10 and -age < (-5)')

SELECT COUNT(*) FROM people WHERE born >= DATE '1980-01-01'
-> count(where="born >= date '1980-01-01'")

SELECT COUNT(*) FROM people WHERE born < '1980-01-01'
-> count(where="born < '1980-01-01'")

SELECT COUNT(*) FROM people WHERE EXTRACT(YEAR FROM born) = 1990 AND MONTH(born) = 1
-> count(where='year(born) = 1990 and month(born) = 1')

SELECT COUNT(*) FROM people WHERE DATE_DIFF('day', born, DATE '2025-06-01') > 10000
-> count(where="days_between(born, date '2025-06-01') > 10000")

SELECT COUNT(*) FROM people WHERE UPPER(region) = 'NORTH' AND LENGTH(region) = 5
-> count(where="upper(region) = 'NORTH' and length(region) = 5")

SELECT COUNT(*) FROM people WHERE LEAST(age, 50) < GREATEST(children, 40)
-> count(where='least(age, 50) < greatest(children, 40)')

SELECT COUNT(*) FROM people WHERE CASE sex WHEN 'F' THEN age > 60 ELSE age > 65 END
-> count(where="case when sex = 'F' then age > 60 else age > 65 end")

SELECT COUNT(*) FROM people WHERE IF(smoker, age > 30, age > 60)
-> count(where='case when smoker then age > 30 else age > 60 end')

SELECT COUNT(*) FROM people WHERE LN(income + 1) > 10 AND SQRT(age) < 7 AND ROUND(height, 1) = 1.7
-> count(where='ln(income + 1) > 10 and sqrt(age) < 7 and round(height, 1) = 1.7')

SELECT COUNT(*) FROM people WHERE NULLIF(children, 0) = 2 AND SIGN(age) = 1 AND MOD(age, 2) = 0
-> count(where='nullif(children, 0) = 2 and sign(age) = 1 and age % 2 = 0')

SELECT AVG(weight / (height * height)) AS bmi FROM people
-> weight / (height * height) = weight / (height * height)
-> mean('weight / (height * height)')

SELECT sex, AVG(weight / (height * height)) AS bmi FROM people GROUP BY sex
-> weight / (height * height) = weight / (height * height)
-> mean('weight / (height * height)', by='sex')

SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM people GROUP BY decade
-> floor(age / 10) = floor(age / 10)
-> count(by='floor(age / 10)')

SELECT age // 10 * 10 AS decade, COUNT(*) FROM people GROUP BY age // 10 * 10
-> age // 10 = age // 10
-> count(by='age // 10')

SELECT FLOOR(income / 50000) * 50000 + 1 AS band, COUNT(*) FROM people GROUP BY 1
-> floor(income / 50000) = floor(income / 50000)
-> count(by='floor(income / 50000)')

SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS band, COUNT(*) FROM people
  GROUP BY band
-> band = case when age < 18 then 'child' when age < 65 then 'adult' else 'old' end
-> count(by='band')

SELECT CASE WHEN age < 18 THEN 'child' ELSE 'adult' END, AVG(income) FROM people GROUP BY CASE WHEN age < 18
  THEN 'child' ELSE 'adult' END
-> case when age < 18 then 'child' else 'adult' end = case when age < 18 then 'child' else 'adult' end
-> mean('income', by="case when age < 18 then 'child' else 'adult' end")

SELECT WIDTH_BUCKET(age, 0, 110, 11) AS bucket, COUNT(*) FROM people GROUP BY bucket
-> floor(clip(age * 11 / 110, (-1), 11)) = floor(clip(age * 11 / 110, (-1), 11))
-> count(by='floor(clip(age * 11 / 110, (-1), 11))')

SELECT WIDTH_BUCKET(age, 20, 60, 4) AS bucket, COUNT(*) FROM people GROUP BY bucket ORDER BY bucket
-> floor(clip((age - 20) * 4 / 40, (-1), 4)) = floor(clip((age - 20) * 4 / 40, (-1), 4))
-> count(by='floor(clip((age - 20) * 4 / 40, (-1), 4))')

SELECT age >= 18 AS adult, COUNT(*) FROM people GROUP BY adult
-> adult = age >= 18
-> count(by='adult')

SELECT smoker, children, COUNT(*) FROM people GROUP BY smoker, children
-> count(by=['smoker', 'children'])

SELECT YEAR(born) AS year, COUNT(*) FROM people WHERE born >= '2000-01-01' GROUP BY year
-> year = year(born)
-> count(where="born >= '2000-01-01'", by='year')

SELECT sex, region, COUNT(*) FROM people GROUP BY ROLLUP (sex, region)
-> count(by=['sex', 'region'])
-> count(by='sex')
-> count()

SELECT sex, region, COUNT(*) FROM people GROUP BY CUBE (sex, region)
-> count(by=['sex', 'region'])
-> count(by='sex')
-> count(by='region')
-> count()

SELECT sex, region, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (region), ())
-> count(by='sex')
-> count(by='region')
-> count()

SELECT sex, smoker, COUNT(*) FROM people GROUP BY sex, ROLLUP (smoker)
-> count(by=['sex', 'smoker'])
-> count(by='sex')

SELECT sex, region, AVG(age) FROM people GROUP BY sex, region WITH ROLLUP
-> mean('age', by=['sex', 'region'])
-> mean('age', by='sex')
-> mean('age')

SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 1000
-> count(by='sex')

SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING n > 100 AND region <> 'north' ORDER BY n DESC
  LIMIT 2
-> count(by='region')

SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY AVG(age)
-> count(by='region')
-> mean('age', by='region')

SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY 2 DESC, region LIMIT 2 OFFSET 1
-> count(by='region')

SELECT ROUND(AVG(income) / 12, 0) AS monthly, -SUM(children) AS less, AVG(age) + 1 FROM people
-> mean('income')
-> sum('children')
-> mean('age')

SELECT sex, SUM(income) / COUNT(income) AS mean, 1 - COUNT(*) FILTER (WHERE smoker) / COUNT(*) AS rest FROM people
  GROUP BY sex
-> sum('income', by='sex')
-> count(where='not income is null', by='sex')
-> count(where='smoker', by='sex')
-> count(by='sex')

SELECT 'all' AS who, COUNT(*) AS n, NULL AS nothing FROM people
-> count()

SELECT 'women' AS who, COUNT(*) AS n FROM people WHERE sex = 'F' UNION ALL SELECT 'men', COUNT(*) FROM people
  WHERE sex = 'M' ORDER BY 2 DESC LIMIT 1
-> count(where="sex = 'F'")
-> count(where="sex = 'M'")

SELECT COUNT(*) FROM people; SELECT AVG(age) FROM people; SELECT COUNT(*) FROM people
-> count()
-> mean('age')

SELECT COUNT(*) FROM (SELECT * FROM people WHERE age >= 18)
-> count(where='age >= 18')

SELECT sex, AVG(bmi) FROM (SELECT sex, weight / (height * height) AS bmi FROM people WHERE age >= 18) AS t WHERE
  bmi < 40 GROUP BY sex
-> weight / (height * height) = weight / (height * height)
-> mean('weight / (height * height)', where='age >= 18 and weight / (height * height) < 40', by='sex')

WITH adults AS (SELECT * FROM people WHERE age >= 18) SELECT region, COUNT(*) FROM adults GROUP BY region
-> count(where='age >= 18', by='region')

WITH a AS (SELECT age, sex FROM people), b AS (SELECT age + 1 AS next, sex FROM a WHERE sex = 'F') SELECT
  AVG(next) FROM b
-> age + 1 = age + 1
-> mean('age + 1', where="sex = 'F'")

SELECT COUNT(*) FROM (SELECT age FROM people WHERE sex = 'F' UNION ALL SELECT age FROM people WHERE sex = 'M')
-> count()

FROM people SELECT COUNT(*)
-> count()

SELECT COUNT(*) -- how many
FROM people /* all of them */ WHERE age > 3
-> count(where='age > 3')

select Count(*) from PEOPLE where AGE > 3 and Sex = 'F'
-> count(where="age > 3 and sex = 'F'")

SELECT COUNT(*) FROM people WHERE "age" > 3
-> count(where='age > 3')

(SELECT COUNT(*) FROM people)
-> count()

SELECT AVG(100.0 * children) FROM people
-> 100.0 * children = 100.0 * children
-> mean('100.0 * children')

SELECT sex, smoker, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) AS middle FROM people GROUP BY sex,
  smoker ORDER BY middle DESC NULLS LAST
-> quantile('income', 0.5, by=['sex', 'smoker'])
"""

VISITS = """
SELECT COUNT(DISTINCT person) FROM visits
-> count(of='people')

SELECT COUNT(DISTINCT v.person) AS people FROM visits AS v WHERE v.icu
-> count(where='icu', of='people')

SELECT COUNT(DISTINCT person) FROM (SELECT ward AS person FROM visits)
-> count_distinct('ward')

SELECT ward, COUNT(DISTINCT person), COUNT(*) FROM visits GROUP BY ward
-> count(by='ward', of='people', max_cells=3)
-> count(by='ward')

SELECT ward, icu, COUNT(DISTINCT person) FROM visits GROUP BY ward, icu
-> count(by=['ward', 'icu'], of='people', max_cells=6)

SELECT ward, SUM(cost), AVG(cost) FROM visits GROUP BY ward
-> sum('cost', by='ward')
-> mean('cost', by='ward')

SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) WHERE n >= 6
-> count(where='n >= 6')

SELECT AVG(n), MEDIAN(cost) FROM (SELECT person, COUNT(*) AS n, SUM(cost) AS cost FROM visits WHERE ward = 'A'
  GROUP BY person) AS t
-> mean('n')
-> quantile('cost', 0.5)

SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person)
-> count()

SELECT COUNT(DISTINCT person) FROM (SELECT person, MAX(cost) AS most FROM visits GROUP BY person) WHERE most >
  90
-> count(where='most > 90')

WITH p AS (SELECT person, BOOL_OR(icu) AS ever, MIN(cost) AS least FROM visits GROUP BY person) SELECT ever,
  COUNT(*), AVG(least) FROM p GROUP BY ever
-> count(by='ever')
-> mean('least', by='ever')

SELECT COUNT(*) FROM (SELECT person, COUNT(*) FILTER (WHERE icu) AS n FROM visits GROUP BY person HAVING
  COUNT(*) > 2 AND SUM(cost) > 100) WHERE n > 0
-> count(where='"count()" > 2 and "sum(cost)" > 100 and n > 0')

SELECT COUNT(*) FROM (SELECT person, COUNT(DISTINCT ward) AS wards, AVG(cost) AS mean FROM visits GROUP BY
  person) WHERE wards = 3 AND mean > 50
-> count(where='wards = 3 and mean > 50')
"""

HOSPITAL = """
SELECT drug, COUNT(*) FROM drugs GROUP BY drug
-> count(by='drug')

SELECT ward, drug, COUNT(*) FROM drugs d JOIN visits v ON d.visit_id = v.visit_id GROUP BY ward, drug
-> count(by=['ward', 'drug'])

SELECT sex, COUNT(*) FROM drugs JOIN visits USING (visit_id) LEFT JOIN persons USING (person_id) WHERE ward =
  'A' GROUP BY sex
-> count(where="ward = 'A'", by='sex')

SELECT sex, COUNT(*) FROM persons GROUP BY sex
-> count(by='sex')

SELECT sex, COUNT(*) FROM persons p JOIN visits v ON v.person_id = p.person_id GROUP BY sex
-> count(by='sex')

SELECT COUNT(DISTINCT person_id) FROM drugs WHERE drug = 'x'
-> count(where="drug = 'x'", of='people')

SELECT ward, COUNT(DISTINCT d.person_id) FROM drugs AS d INNER JOIN visits USING (visit_id) GROUP BY ward
-> count(by='ward', of='people', max_cells=2)
"""
TABLES = {"people": PEOPLE, "visits": VISITS, "hospital": HOSPITAL}


def statements(name: str) -> Iterator[tuple[str, list[str]]]:
    """The statements about one table, each with what it becomes."""
    for block in TABLES[name].strip().split("\n\n"):
        lines = block.splitlines()
        text = "\n".join(line for line in lines if not line.startswith("-> "))
        yield text, [line.removeprefix("-> ") for line in lines if line.startswith("-> ")]


ALL = [(name, text, expected) for name in TABLES for text, expected in statements(name)]
