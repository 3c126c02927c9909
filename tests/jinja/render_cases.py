"""What make_render_goldens.py renders: single expressions, whole sources, and what the engine refuses by name."""

VARIABLES = {
    "n": 7, "z": 0, "neg": -7, "f": 2.5, "big": 1e20, "t": True, "no": None, "s": "Hello, World", "e": "",
    "u": "Grüße ΑΣ 🙂 ǆ ß", "w": " \t\u00a0x y\u3000\n", "l": [3, 1, 2], "el": [], "d": {"b": 1, "a": {"k": [10, 20]}},
    "ed": {}, "names": ["bob", "Alice", "carol", "alice"], "q": "it's \"q\" \\ \n\t\u200b\u00e9\u0001",
    "rows": [{"n": "x", "v": 2, "g": "A"}, {"n": "y", "v": 1, "g": "b"}, {"n": "z", "v": 2, "g": "a"}],
    "nested": [[1, 2], [3, [4, "five"]], {"six": None}], "items": {"items": 1, "keys": "K", "update": 2},
    "lines": "one\ntwo\r\n\nthree\x0bfour", "html": "<a href='x'>&\"</a>",
}

EXPRESSIONS = r"""
1|1.5|.5|1_000|0x1F|0b101|0o17|1e3|1.5e-7|1e16|123456789.123|1e15|0.1+0.2|1/3|100000000000000000.0|5e-324|1.0|-0.0
'a\n\t\x41\u00e9\U0001F642\101\q\\'|"a'b"|'a"b'|'a' 'b' "c"|'\é'
True|true|False|none|None|[]|[1,]|[1,2,]|()|(1,)|(1,2)|{}|{'a':1,}|{'a':1,'b':[1,(2,)]}|{1:2,1.0:3,True:4}|[none,true,1.0,'x']
1+2|1-2|2*3|7/2|7//2|-7//2|7%3|-7%3|7%-3|2**10|2**-1|2**0.5|-2**2|2**3**2|7.5//2|-7.5%2|7//2.0|1+True|'a'+'b'|[1]+[2]|(1,)+(2,)|'ab'*3|3*'ab'|[1,2]*2|'x'*-1|(1,)*2
1+'a'|'a'+1|[1]+(1,)|1/0|1//0|1%0|none+1|n+undef|undef+1|undef*2|-undef|undef-1|undef/2|undef%2|undef**2|'a'~undef~1|undef==undef|undef==1|undef!=undef|undef<1|1<undef|not undef|undef or 'x'|undef and 'x'
1~2~'x'~none~true~1.5~[1]|'%s and %d'%('a',3)|'%5.2f|%-5s|%05d|%x|%X|%o|%e|%g|%r|%%'%(1.234,'ab',42,255,255,8,12345.678,0.0001,'q')|'%s'%5|'%s'%[1,2]|'%(a)s'%{'a':1}|'%d'%'x'|'%s'%(1,2)|'%s %s'%1|'%s'%undef
1==1.0|1==True|'a'=='a'|[1,2]==[1,2]|(1,)==[1]|{'a':1}=={'a':1.0}|none==none|1!=2|1<2<3|1<2>3|1<3>2==2|'a'<'b'|'B'<'a'|[1,2]<[1,3]|[1]<[1,0]|(1,2)<(1,)|1<'a'|none<1|true<2|1<=1|2>=3|2>1.5
1 in [1,2]|'a' in 'abc'|'' in ''|1 not in [1]|'a' in {'a':1}|1 in {'a':1}|1 in 'abc'|'k' in undef|none in [none]|1.0 in (1,2)|[1] in [[1]]|1 in 5|n in range(10)|not 1 in [1]
t and n|z or 'd'|z and n|not z|not not n|n if t else 0|n if z|(n if z) is undefined|1 if z else 2 if z else 3|not n == 7|n == 7 and s|-n|+n|-f|- -n|+true|-true|+'a'|-'a'
d.a|d['a']|d.a.k[1]|d.a.k.1|d['a']['k'][-1]|d.x|d.x.y|d['x']|d['x']['y']|d.a.k[5]|d.a.k[5].x|s.foo|s[0]|s[-1]|s[99]|u[2]|u[-1]|u[9:12]|n.foo|n[0]|none.foo|no.x.y|l['0']|l.0|d[l]|undef.x|undef['x']|undef()|s['upper']()
items['items']|items.keys()|items['keys']|items.update|items['update']|items.nothing|d.update({'x':1})|l.append(1)|l.append|l.sort()|d.pop('b')|d.clear|s.__class__|s.__class__.__mro__|s._private|d._x|l.__len__|d['__class__']
l[1:]|l[:1]|l[::-1]|l[::2]|l[-2:]|l[5:]|l[:-5]|l[1:100]|l[-100:2]|l[2:0:-1]|l[:]|l[::-2]|(1,2,3)[1:]|s[1:4]|s[::-1]|u[::-1]|u[1:3]|s[-3:]|s[::3]|s[10:2]|l[::0]|l['a':]|d[1:]|undef[1:]|e[::-1]|u[6:8]|l[none:2]|l[1:none:1]|s[8:1:-2]
s.upper()|s.lower()|u.upper()|u.lower()|u.title()|u.capitalize()|s.title()|"they're bill's".title()|s.capitalize()|'hELLO'.capitalize()|s.strip('Hd')|w.strip()|w.lstrip()|w.rstrip()|'xxaxx'.strip('x')|'xyaxy'.lstrip('yx')|'a'.strip('')|w.strip(none)
s.split()|s.split(',')|s.split(', ')|'a b  c '.split()|' a b  c '.split(none,1)|' a b  c '.rsplit(none,1)|'a,b,c'.split(',',1)|'a,b,c'.rsplit(',',1)|'a,b,c'.split(',')[-1]|e.split()|e.split(',')|'a'.split('')|'a,b'.split(sep=',')|'a,b,c'.split(',',maxsplit=1)|'abc'.split('x')|w.split()|lines.split('\n')|' a '.split(' ')|'  a b  '.split(none,0)|'<think>x</think>y'.split('</think>')[0].split('<think>')[-1]
lines.splitlines()|lines.splitlines(true)|''.splitlines()|'a\n'.splitlines()|s.startswith('Hell')|s.startswith(('x','He'))|s.startswith('lo',3)|s.endswith('ld')|s.endswith(('a','b'))|s.startswith(1)|s.endswith('')|s.startswith('W',7,8)|u.startswith('ü',2)
s.replace('l','L')|s.replace('l','L',1)|s.replace('','-')|'aaa'.replace('aa','b')|u.replace('','.')|s.replace('l','')|s.find('o')|s.find('o',5)|s.find('zz')|s.rfind('o')|u.find('Σ')|s.index('W')|s.index('zz')|s.rindex('o')|s.count('l')|s.count('')|'aaaa'.count('aa')|s.count('l',4)|s.find('o',-5)|u.rfind('ß')|s.find('',99)|s.find('',12)
','.join(['a','b'])|','.join([])|','.join('abc')|','.join([1])|''.join(names)|', '.join(d)|'{} {}'.format(1,'a')|'{0}{1}{0}'.format('a','b')|'{x}'.format(x=1)|'{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:x}'.format('a','b','c',42,1.239,255)|'{{}}'.format()|'{}'.format()|'{!r}'.format('a')|'{a.k}'.format(a={'k':1})|'{0[1]}'.format([1,2])|'{:*^7}'.format('x')|'{:d}'.format('x')|'{} {0}'.format(1)|'{'.format()|'{:+d}'.format(5)
'123'.isdigit()|'12a'.isdigit()|''.isdigit()|'²'.isdigit()|'abc'.isalpha()|'é'.isalpha()|'a1'.isalnum()|'a 1'.isalnum()|' \t'.isspace()|'ABC'.isupper()|'AbC'.isupper()|'1'.isupper()|'abc'.islower()|'ß'.islower()|'a1'.islower()|'abc'.isascii()|'é'.isascii()
'foobar'.removeprefix('foo')|'foobar'.removesuffix('bar')|'foobar'.removeprefix('x')|'42'.zfill(5)|'-42'.zfill(5)|'+4'.zfill(1)|'ab'.ljust(5)~'.'|'ab'.rjust(5)|'ab'.center(5)~'.'|'abc'.center(6)~'.'|'ab'.center(7,'*')|'ab'.ljust(5,'é')|'a'.center(4,'*')|'a-b-c'.partition('-')|'a-b-c'.rpartition('-')|'abc'.partition('-')|'abc'.rpartition('-')|'a'.partition('')
d.get('b')|d.get('x')|d.get('x',5)|d.get('a').get('k')|d.keys()|d.values()|d.items()|d.keys()|list|d.items()|list|d.values()|length|d.keys()[0]|d.items()|first|d.copy()|l.copy()|l.index(2)|l.index(9)|l.count(1)|(1,1,2).count(1)|(1,2).index(2)|d.keys()==d.keys()|'a' in d.keys()|ed.items()|l.index(1,1)
n|abs|neg|abs|-2.5|abs|'a'|abs|undef|abs|true|abs|d|attr('items') is callable|d|attr('b')|s|attr('upper')()|d|attr('x') is undefined
[1,2,3,4,5]|batch(2)|list|[1,2,3]|batch(2,'x')|list|el|batch(2)|list|[1,2,3,4,5]|slice(2)|list|[1,2,3,4,5]|slice(3,'x')|list|[1,2]|slice(0)|list|l|batch(0)|list
s|capitalize|'hello WORLD'|capitalize|u|capitalize|5|capitalize|'ab'|center(6)~'.'|'abc'|center(6)~'.'|undef|capitalize|none|capitalize
undef|default('x')|none|default('x')|''|default('x')|''|default('x',true)|none|d('y',true)|undef|default|undef|d(default_value='q')|0|d('y',boolean=true)|undef.x|default('x')|d.x|default('x')|d.x.y|default('x')
d|dictsort|{'b':1,'A':2,'c':0}|dictsort|{'b':1,'A':2}|dictsort(true)|{'b':1,'A':2}|dictsort(false,'value')|{'b':1,'A':2}|dictsort(reverse=true)|{'a':1}|dictsort(by='x')|l|dictsort|{'a':1,2:3}|dictsort
html|e|html|escape|html|safe|html|e|e|html|string|5|e|5|string|none|string|undef|string|undef|e|[1,'<']|e|html|safe|safe|html|e is escaped|html is escaped
l|first|el|first|s|first|d|first|undef|first|5|first|l|last|el|last|s|last|d|last|el|first is undefined|range(3)|last|none|first
'3.7'|float|3|float|'x'|float|'x'|float(1.5)|none|float|undef|float|'1e3'|float|' 2 '|float|'inf'|float|'nan'|float|'1_0'|float|l|float|true|float|'-1.5'|float|'.5'|float
'3'|int|'3.9'|int|3.9|int|-3.9|int|'x'|int|'x'|int(7)|none|int|undef|int|'0x1f'|int(0,16)|'1f'|int(0,16)|'101'|int(base=2)|true|int|'1e3'|int|' 42 '|int|'-5'|int|'1_000'|int|'inf'|int|'+5'|int|'0b11'|int(0,0)|l|int|''|int
'%s-%s'|format('a',1)|'%(a)s'|format(a=1)|'%d'|format('x')|'%.3f'|format(2.0)|'%s'|format|'x'|format(1)
rows|groupby('g')|rows|groupby('v')|list|rows|groupby('g',case_sensitive=true)|rows|groupby('zz','dflt')|rows|groupby('v')|map(attribute='grouper')|list|rows|groupby('v')|map('first')|list|rows|groupby('v')|map('last')|map('length')|list
'a\nb'|indent|'a\nb'|indent(2)|'a\nb'|indent(2,true)|'a\n\nb'|indent(2,blank=true)|'a\n\nb'|indent(2)|'a\nb'|indent('>>')|'a\nb\n'|indent(first=true)|''|indent|5|indent|''|indent(2,true)|lines|indent(1)
d|items|list|undef|items|list|l|items|list|[1,2]|join|[1,2]|join(', ')|rows|join(',','n')|rows|join(',',attribute='v')|'abc'|join('-')|d|join('-')|undef|join|none|join|[none,true,1.5,undef]|join('|')|nested|join(';')|5|join
l|length|s|length|u|length|d|length|undef|length|5|length|none|length|l|count|range(5)|length|el|length|(l|map('string'))|length
l|list|'abc'|list|u|list|d|list|undef|list|5|list|range(3)|list|none|list|l|lower|s|lower|u|lower|'ΑΣ'|lower|'ΣΑΣ. Σ'|lower|'İ'|lower|s|upper|u|upper|'ŉ ﬁ ᾳ'|upper|'ß ﬁ ǆ'|title|u|title
rows|map(attribute='n')|list|rows|map(attribute='zz')|list|rows|map(attribute='zz',default='D')|list|names|map('upper')|list|l|map('string')|join(',')|[[1,2],[3]]|map('join','-')|list|[[1],[]]|map('first')|list|l|map|list|l|map('nofilter')|list|el|map('nofilter')|list|nested|map('length')|list|[' a ']|map('trim')|list|rows|map(attribute='n')|first|names|map('replace','a','o')|list|[{'a':{'b':1}}]|map(attribute='a.b')|list|[[5,6]]|map(attribute=1)|list|[[5,6]]|map(attribute='1')|list
l|max|l|min|el|max|names|max|names|min|names|max(true)|rows|max(attribute='v')|rows|min(attribute='v')|[1,'a']|max|[2.5,1,true]|min|['b','A']|min(case_sensitive=true)|s|max
l|select|list|[0,1,2,'']|select|list|[1,2,3,4]|select('odd')|list|[1,2,3,4]|reject('odd')|list|[1,2,3]|select('gt',1)|list|[1,2,3]|select('divisibleby',2)|list|names|select('in',['bob'])|list|[none,1,undef]|select('defined')|list|[none,1]|reject('none')|list|l|select('notest')|list|[0,1]|reject|list|[1,2,3]|select('>',1)|list|names|select('equalto','bob')|list
rows|selectattr('v')|list|rows|selectattr('v','equalto',2)|map(attribute='n')|list|rows|rejectattr('v','equalto',2)|map(attribute='n')|list|rows|selectattr('zz')|list|rows|rejectattr('zz')|list|length|rows|selectattr('zz','defined')|list|rows|selectattr('g','in',['A','a'])|map(attribute='n')|join|rows|selectattr|list|el|selectattr('x')|list|undef|selectattr('x')|list|rows|selectattr('v','eq',2)|first|rows|selectattr('n','undefined')|list|rows|selectattr('v','==',1)|list|length
s|replace('l','L')|s|replace('l','L',2)|5|replace('5','6')|s|replace(',',1)|none|replace('N','M')|s|replace('o')|l|reverse|list|s|reverse|u|reverse|d|reverse|list|5|reverse|(1,2)|reverse|list|l|map('string')|reverse|list|l|reverse|first|d.items()|reverse|list
2.5|round|3.5|round|2.675|round(2)|2|round|2.1|round(0,'ceil')|2.9|round(0,'floor')|1234.567|round(-2)|'a'|round|1.25|round(1)|-2.5|round|7|round(1)|42.55|round(1,'floor')|7|round(method='ceil')|2|round(0,'x')|0.5|round|1e300|round
names|sort|names|sort(true)|names|sort(case_sensitive=true)|l|sort|l|sort(reverse=true)|rows|sort(attribute='v')|map(attribute='n')|join|rows|sort(attribute='v,n')|map(attribute='n')|join|rows|sort(true,attribute='v')|map(attribute='n')|join|[1,'a']|sort|d|sort|'hello'|sort|rows|sort|undef|sort|[(2,'b'),(1,'c')]|sort
l|sum|el|sum|rows|sum(attribute='v')|l|sum(start=10)|[1.5,2]|sum|['a']|sum|[[1],[2]]|sum(start=[])|rows|sum('v',100)
'hello world-foo (bar)'|title|"it's"|title|'a<b [c {d'|title|5|title|d|tojson|nested|tojson|u|tojson|q|tojson|html|tojson|d|tojson(indent=2)|nested|tojson(indent=4)|ed|tojson(indent=2)|el|tojson(indent=2)|d|tojson(separators=(',',':'))|{'b':1,'a':2}|tojson(sort_keys=true)|u|tojson(ensure_ascii=true)|[1.0,1e20,0.1,-0.0,1e-7,12345678901234567]|tojson|{1:2,none:3,true:4,1.5:5}|tojson|{(1,2):3}|tojson|undef|tojson|(1,2)|tojson|range(3)|tojson|d|tojson(indent=0)|d|tojson(indent='\t')|d|tojson(true)|d|tojson(false,2)|true|tojson|none|tojson|'\x7f\x1f/'|tojson|'a\x7fb~'|tojson(ensure_ascii=true)|d.items()|tojson|l|map('string')|tojson|d|tojson|safe|d|tojson(indent=2,separators=(',',': '))
w|trim|'xxaxx'|trim('x')|5|trim|undef|trim|none|trim|'a'|trim('')|w|trim|length|'foo bar baz qux'|truncate(9)|'foo bar baz qux'|truncate(9,true)|'foo bar baz qux'|truncate(11)|'foo bar baz qux'|truncate(11,false,'...',0)|'foo bar'|truncate(5,end='…',leeway=0)|'abc'|truncate(1)|'abcdefghijk'|truncate(4,leeway=0)
names|unique|list|[1,1.0,true,2]|unique|list|names|unique(true)|list|rows|unique(attribute='v')|map(attribute='n')|list|[[1]]|unique|list|'foo bar, baz-qux'|wordcount|u|wordcount|''|wordcount|l|map('abs')|sum
n is defined|undef is defined|undef is undefined|d.x is defined|d.b is defined|no is none|no is not none|undef is none|n is number|f is number|t is number|s is number|n is integer|t is integer|f is integer|f is float|n is float|t is boolean|n is boolean|t is true|z is false|no is false|t is false|1 is true
s is string|n is string|l is sequence|s is sequence|d is sequence|n is sequence|undef is sequence|range(2) is sequence|d.items() is sequence|d.keys() is iterable|l is iterable|s is iterable|n is iterable|undef is iterable|none is iterable|d is mapping|l is mapping|undef is mapping|(1,2) is sequence|l|map('abs') is sequence
3 is odd|4 is odd|4 is even|3.0 is odd|6 is divisibleby(3)|6 is divisibleby 4|7 is divisibleby 0|'a' is odd|'abc' is lower|'ABC' is upper|'aB' is lower|5 is lower|n is eq 7|n is equalto(7)|n is ne 7|n is gt 5|n is lt 5|n is ge 7|n is le 6|n is lessthan 9|n is greaterthan 9|'a' is in ['a']|'a' is in 'abc'|n is not in [7]|n is sameas 7|none is sameas none|l is sameas l|l is sameas [3,1,2]|t is sameas true|1 is sameas true|s is sameas(s)
range is callable|n is callable|s.upper is callable|undef is callable|'upper' is filter|'nofilter' is filter|'odd' is test|'notest' is test|'tojson' is filter|1 is filter|n is odd and t|not n is odd|n is not odd or t|n is odd is even|n is nosuchtest|n|nosuchfilter|s is string and s|length > 3|n is defined and n is number|n is eq(7) == true|3 is not odd|[] is not none|n is in l or t
range(3)|range(1,4)|range(4,1,-1)|range(0,10,3)|list|range(0)|range(3)|length|range(100001)|range(-1)|list|range('a')|range()|range(1,2,0)|range(3)[1]|range(3)[-1]|range(5)|sum|dict(a=1)|dict({'a':1},b=2)|dict([('a',1)])|dict()|namespace(a=1).a|namespace(a=1).b is defined|namespace(a=1)['a']|namespace()|namespace({'x':1}).x|namespace(_a=1)|namespace(a=1)|cycler('a','b').next()|cycler()|joiner()()|joiner('|')()|lipsum is defined|raise_exception('boom')|raise_exception()|raise_exception(5)|strftime_now('%d %b %Y')|strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %p %I %y %%')|strftime_now('%-d.%-m.')|strftime_now()
dict(**{'a':1})|dict(*[[('a',1)]])|range(*[1,4])|list|'{}{}'.format(*l)|'{a}'.format(**{'a':1})|dict(a=1,**{'a':2})|nosuch(1)|n(1)|s()|l()|d.a()|(1)(2)
nested|d|q|[q]|[u]|[html]|{'k':q}|[1.0,1e22,0.00001]|[none,undef,true]|names|tojson|rows|rows[0]|rows[0].n|d.items()|list|first|(l|map('string'))|list|{'a':undef}|[e]|["'"]|['"']|['\'"']|['\\']|[f,big]|big|f|1e22|2.0*3|10/2|7//2.0|1e400
"""

SOURCES = r"""
{% for i in l %}{{ i }},{% endfor %}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}{{ loop }}
{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}
{% for i in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i > 2) }}{% endfor %}
{% for i in l if i > 1 %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ loop.last }};{% else %}none{% endfor %}
{% for i in l if i > 9 %}{{ i }}{% else %}none{% endfor %}
{% for i in [] %}x{% else %}empty{{ loop }}{% endfor %}
{% for i in undef %}x{% else %}empty{% endfor %}
{% for i in no %}x{% endfor %}
{% for i in 5 %}x{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}
{% for k in d %}{{ k }}{% endfor %}
{% for c in u %}[{{ c }}]{% endfor %}
{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}-{{ b }};{% endfor %}
{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
{% for a, b in [1] %}{{ a }}{% endfor %}
{% for i in [1,2,3,4] %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in [1,2,3,4] %}{% if i == 3 %}{% continue %}{% endif %}{{ i }}{% endfor %}
{% for i in [1,2] %}{% continue %}{% else %}E{% endfor %}
{% for i in [1,2] %}{% break %}{% else %}E{% endfor %}
{% for i in [1,2] %}{{ i }}{% if i == 2 %}{% break %}{% endif %}{% else %}E{% endfor %}
{% for i in [1,2] %}{% for j in [1,2,3] %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}
{% for i in [[1,[2,[3]]]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}@{{ loop.depth }}{% endif %}{% endfor %}
{% for i in [1] %}{{ loop([2]) }}{% endfor %}
{% for i in 1, 2, 3 %}{{ i }}{% endfor %}
{% for i in [1,2] %}{% set x = i %}{% endfor %}{{ x }}
{% set x = 0 %}{% for i in [1,2] %}{{ x }}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}
{% set x = 0 %}{% if true %}{% set x = 1 %}{% endif %}{{ x }}
{% if false %}{% set x = 1 %}{% endif %}{{ x is defined }}
{% if n > 5 %}{% set n = 1 %}{% endif %}{{ n }}
{{ n }}{% set n = 2 %}{{ n }}
{% set ns = namespace(x=0, found=false) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.found }}
{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}
{% set d.x = 1 %}
{% set undef.x = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}
{% set a = 1, 2 %}{{ a }}
{% set (a, b) = (1, 2) %}{{ a }}{{ b }}
{% set a, b = 1 %}{{ a }}
{% set a, b = undef %}{{ a }}
{% set x %}A{{ n }}{% endset %}[{{ x }}]
{% set x | upper | replace('A', 'b') %}aA{{ n }}{% endset %}[{{ x }}]
{% set x %}{% set y = 1 %}{% endset %}{{ y is defined }}
{% for i in l %}{% set x %}{{ i }}{% if i == 1 %}{% break %}{% endif %}{% endset %}{{ x }}{% endfor %}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a }}{{ c }}
{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}
{% if n %}a{% elif s %}b{% else %}c{% endif %}
{% if z %}a{% elif z %}b{% elif n %}d{% else %}c{% endif %}
{% if z %}a{% elif z %}b{% else %}c{% endif %}
{% if undef %}a{% endif %}{% if not undef %}b{% endif %}
{% if n == 7, %}tuple{% endif %}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(a=4, c=5) }}{{ m() }}
{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) }}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=1) }}
{% macro m(a, a2) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, 4, x=5) }}
{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body{{ n }}{% endcall %}
{% macro m() %}<{{ caller(1, 2) }}>{% endmacro %}{% call(a, b=9) m() %}{{ a }}{{ b }}{% endcall %}
{% macro m() %}<{{ caller is defined }}>{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}
{% macro m() %}{% set x = 5 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}
{% macro m(k) %}{{ k }}{% if k > 0 %}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(3) }}
{% macro m(i) %}{{ loop }}{% endmacro %}{% for i in [1] %}{{ m(i) }}{% endfor %}
{% for i in [1,2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m(a, a) %}{% endmacro %}
{% set r = m2(1) %}{% macro m2(x) %}{% endmacro %}
{% macro a(x) %}[{{ x }}]{% endmacro %}{% macro b(x) %}{{ a(x) | upper }}{% endmacro %}{{ b('q') }}
{% filter upper %}a{{ s }}{% endfilter %}
{% filter replace('a', 'b') | upper %}aab{% endfilter %}
{% filter upper %}{% set y = 'k' %}{{ y }}{% endfilter %}{{ y is defined }}
{% raw %}{{ x }}{% if %}{# c #}{% endraw %}
{% raw %}
 a
{% endraw %}
x
a {%- raw -%} b {%- endraw -%} c
  {% raw %}  b
  {% endraw %}
{# comment #}a{#- c -#} b
a {#- c #} b {# c -#} c
{# {{ not }} {% parsed %} #}x
{# unclosed
{{ n
{% if n
{% if n %}
{% for i in l %}
{% endif %}
{% else %}
{{ }}
{% %}
{{ 1 + }}
{{ (1 }}
{{ 1) }}
{{ [1 }}
{{ 'abc }}
{{ "abc' }}
{{ a b }}
{{ 1 2 }}
{{ a. }}
{{ a['x' }}
{{ a[] }}
{{ not }}
{{ | upper }}
{{ a | }}
{{ a is }}
{{ {1} }}
{{ {1:} }}
{{ f(a=1, 2) }}
{{ f(**{}, *[]) }}
{{ a ! b }}
{{ a & b }}
{{ $ }}
{{ a = 1 }}
{% set 1 = 2 %}
{% set true = 2 %}
{% set a.b.c = 2 %}
{% set a[0] = 2 %}
{% set f() = 2 %}
{% set [a] = [2] %}
{% set x %}
{% for true in l %}{% endfor %}
{% for loop in l %}{{ loop }}{% endfor %}
{% for i in l %}{% set loop = 1 %}{% endfor %}
{% for i l %}{% endfor %}
{% for i in %}{% endfor %}
{% break %}
{% continue %}
{% do 1 %}
{% nosuch %}
{% endfor %}
{% debug %}
{% if n %}a{% endif
{% if n %}a{% else %}b{% else %}c{% endif %}
{% if n %}a{% elif %}b{% endif %}
{% macro %}{% endmacro %}
{% macro m %}{% endmacro %}
{% call n %}{% endcall %}
{% filter %}{% endfilter %}
{% filter nosuch %}{% endfilter %}
{% generation %}a{% endgeneration %}
x{% generation %}é{{ n }}{% endgeneration %}y{% generation %}{% endgeneration %}z
{% for i in l %}{{ i }}:{% generation %}<{{ i }}{{ loop.index }}>{% endgeneration %}{% endfor %}
{% generation %}{% set x = 1 %}{% endgeneration %}{{ x is defined }}
{% generation %}
  a
{% endgeneration %}
b
{%- generation -%} a {%- endgeneration -%} b
{% for i in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}
{% generation %}a
{% print n %}{% print n, s %}{% print %}
a{% if true %}   b   {% endif %}c
{% if true -%}   b   {%- endif %}c
   {%- if true %}b{% endif -%}   c
{{ n -}}   x   {{- n }}
{{- n }} {{+ n }}
{{ n +}}
{%+ if true %}x{% endif +%}
  {%+ if true %}x{% endif %}
{% if true +%}
x{% endif %}
  {#+ c #}x
  {# c +#}
x
{{ '}}' }}{{ '{{' }}{{ {'a': {'b': 1}} }}
{{ {'a': {'b': 1}}['a']['b'] }}
{{ {} }}{{ {}}}
{% set x = {'a': '%}'} %}{{ x }}
{%if n%}a{%endif%}{{n}}{{-n-}}
{% if n: %}a{% endif %}
{% for i in l: %}{{ i }}{% endfor %}
{ { n } } {n} {% raw %}{%{% endraw %}
{{ n }}{{ s }}
{{ "a" if n else "b" }}{{ 'c' if z }}
{{ s | default('x') | upper | length }}
{{ (s | upper).lower() }}{{ s | upper() }}{{ s.split(', ')[0] | upper }}
{{ -n | abs }}{{ (-n) | abs }}{{ 2 ** 3 | string }}{{ 1 + 2 | string | length }}
{{ not n is defined }}{{ n is defined and not z }}{{ n in l or t }}{{ 'x' ~ n + 1 }}
{{ n + 1 ~ 'x' }}{{ 'a' ~ 'b' * 2 }}{{ 10 - 2 - 3 }}{{ 2 * 3 % 4 }}
{% set x = l | map('string') %}{{ x | list }}{{ x | list }}
{% set x = l | select('gt', 1) %}{{ x | first }}{{ x | list }}{{ 3 in x }}
{% set x = rows | selectattr('v', 'eq', 2) | list %}{{ x | length }}{{ x[0].n }}
{% for m in rows[::-1] %}{{ loop.index0 }}{{ m.n }}{{ (rows|length - 1) - loop.index0 }}{% endfor %}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}
{% set j = joiner() %}{% for i in l %}{{ j() }}{{ i }}{% endfor %}
{% set j = joiner(';') %}{% for i in l %}{{ j() }}{{ i }}{% endfor %}
{% if d.x is defined and d.x.y %}a{% endif %}b
{% if 'role' in rows[0] or 'n' in rows[0] %}y{% endif %}
{{ undef }}{{ undef.x is defined }}
{{ raise_exception('stop: ' ~ n) }}
{% if n == 7 %}{{ raise_exception('n is 7') }}{% endif %}x
{% if n == 8 %}{{ raise_exception('n is 8') }}{% endif %}x
{% set loop_messages = rows %}{% for m in loop_messages %}{% if (m.v == 2) != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{% endfor %}
{% if s is string %}{{ s }}{% else %}{% for i in s %}{{ i }}{% endfor %}{% endif %}
{{ [1, 2, 3] | map('string') | join(', ') }}{{ {'a': 1} | tojson }}
{% set x = 1 if t else 2 %}{{ x }}{% set x = x + 1 %}{{ x }}
{{ loop is defined }}{{ caller is defined }}
{{ true }}{{ True }}{{ none }}{{ None }}{{ false }}
{{ 1 if }}
{{ x for x in l }}
{{ lambda }}
{{ l[1, 2] }}{{ d[1, 2] is defined }}
{{ s if s else }}
{%- for i in l -%}
  {{ i }}
{%- endfor -%}
 tail 
{% for i in l %}

  a {{ i }}

{% endfor %}

end

{% if true %}
    {% if true %}
    x
    {% endif %}
{% endif %}
y
  {{ n }}
  {% set a = 1 %}  
  z
{{ '\n' }}{{ "\\n" }}{{ '\'' }}
text with { and } and % and # and {# c #}{{ n }}%}
""".strip("\n")

# Each a source of several lines, kept whole.
BLOCKS = [
    "a\n", "a\n\n", "\n", "", "a\r\nb\rc\n", "\ta\n  {% if t %}\n\tb\n  {% endif %}\n c", "{{ n }}\n", "{{ n }}\n\n",
    "{% if t %}\n{% endif %}\n", "  {% if t %}  \n  a\n  {% endif %}  \nb\n", "x {% if t %}\ny\n{% endif %} z\n",
    "{%- if t -%}\n\n  a  \n\n{%- endif -%}\n\n b", "{% if t -%}\n  a\n{%- endif %}\n b", "\n\n{%- if t %}a{% endif %}",
    "a\n  {#- c -#}  \n b", "a\n  {# c #}  \n b", "a\n  {# c #}\n b", "  {# c #}b", "a\n\t{% set x = 1 %}\n\t{{ x }}\n",
    "{% for i in l %}\n{{ i }}\n{% endfor %}\n", "{% for i in l -%}\n{{ i }}\n{%- endfor %}\n",
    "{% for i in l %}  {{ i }}  \n  {% endfor %}", "  {%- raw %}\n a {% endraw -%}\n b", "{% raw -%}\n a\n {%- endraw %}\n b",
    "a\n  {%+ if t %}b{% endif %}", "a\n  {% if t +%}\nb{% endif %}", "a\n\u00a0{% if t %}b{% endif %}",
    "a\u2003{%- if t %}b{% endif %}", "a\n  {%- set x = 1 +%}\n b", "{{- n -}}\n\n{{- n -}}", "{{ n }}  {%- if t %} b{% endif %}",
    "{# a #}{# b #}\n{# c #}\n", "{#\n multi\n line\n#}\nx", "{% set x = '\r\n' %}{{ x|length }}", "{{ '''a''' }}",
    "{% macro m() %}\n  a\n{% endmacro %}\n{{ m() }}\n", "{% macro m() -%}\n  a\n{%- endmacro %}[{{ m() }}]",
    "{% call x() %}{% endcall %}", "{% if t %}a{% endif %}\n{% if t %}b{% endif %}\n", "\n{% if t %}\n\na\n\n{% endif %}\n\n",
    "{% set x %}\n a\n{% endset %}[{{ x }}]", "{{ n\n}}\n{{\nn }}", "{% if\nt\n%}\na{% endif %}", "a {{ n }} b\n\n c",
    "{%- generation %}\n a\n{% endgeneration -%}\n b", "  {% generation %}a{% endgeneration %}\n b",
]

# What the engine refuses by name though Jinja renders it.
REFUSED_EXPRESSIONS = r"""
2**100|10**30|9223372036854775807+1|99999999999999999999|s|pprint|s|striptags|s|urlencode|'a b'|wordwrap(1)|s|forceescape|1000|filesizeformat|{'a':1}|xmlattr|s|urlize|s.casefold()|s.swapcase()|s.encode()|n.bit_length()|f.is_integer()|s.isnumeric()|(html|e)+'<'|(html|safe).upper()|range(5)[1:3]|namespace(a=[1])|125|round(-1)|n.real|n.bit_count()|d.items|l.index|range|'%x'%-5|'%i'%5 ~ '%#x'%255
"""
REFUSED_SOURCES = [
    "{% autoescape true %}{{ html }}{% endautoescape %}", "{% block a %}x{% endblock %}",
    "{% macro m() %}{% generation %}x{% endgeneration %}{% endmacro %}{{ m() }}",
    "{% set x %}{% generation %}x{% endgeneration %}{% endset %}{{ x }}",
    "{% generation %}a{% generation %}b{% endgeneration %}{% endgeneration %}",
    "{% if z %}{{ n | nosuchfilter }}{% endif %}x", "{% if z %}{{ n is nosuchtest }}{% endif %}x", r"{{ '\N{BULLET}' }}",
    "{% for i in [1] %}{{ loop }}{% endfor %}", "{{ self is defined }}", "{{ lipsum(n=1) }}", "{{ l | random }}",
]
