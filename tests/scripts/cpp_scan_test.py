#!/usr/bin/env python3
"""The reader of scripts/cpp_scan.py sees functions, classes and members; size_test.py and format_test.py what is too
large and too wide.

usage: cpp_scan_test.py SOURCE_DIR
"""
import pathlib
import sys
import tempfile
import unittest

SOURCE_DIR = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path[:0] = [str(SOURCE_DIR / "scripts"), str(SOURCE_DIR / "tests")]
import cpp_scan  # noqa: E402
import format_test  # noqa: E402
import size_test  # noqa: E402


def functions(text):
    return {found.name: found.size for found in cpp_scan.Scan(text).functions}


def classes(text):
    return {found.name: (found.lines, found.data_members, found.has_functions) for found in cpp_scan.Scan(text).classes}


class Functions(unittest.TestCase):
    def test_a_long_function_is_measured_from_head_to_brace(self):
        body = "  work();\n" * 90
        self.assertEqual(functions("namespace a::b {\nstd::vector<int>\nWork(int x) {\n" + body + "}\n}\n"), {"Work": 93})

    def test_braces_in_literals_and_comments_do_not_count(self):
        text = 'void F() {\n  a("}\\"}", \'}\', R"x(} )" })x");  // }\n  /* } */ b(1\'000);\n}\nvoid G() {}\n'
        self.assertEqual(functions(text), {"F": 4, "G": 1})

    def test_members_carry_the_classes_around_them(self):
        text = "struct A {\n  class B {\n    ~B() {}\n    bool operator==(const B&) const { return true; }\n  };\n};\nint A::B::f() {\n}\n"
        self.assertEqual(functions(text), {"A::B::~B": 1, "A::B::operator ==": 1, "A::B::f": 2})

    def test_initialisers_in_braces_do_not_end_a_constructor(self):
        text = "A::A(int n)\n    : a_(n), b_{n, {1}}, C<int>{} {\n  x();\n}\nvoid F() {}\n"
        self.assertEqual(functions(text), {"A::A": 4, "F": 1})

    def test_defaults_arrows_and_attributes_belong_to_the_head(self):
        text = ("template <typename T = int, int n = 2>\nauto F(T a = {}, int b = 3) noexcept(false) -> std::pair<T, int> {\n}\n"
                "__global__ void __launch_bounds__(256) K(float* x) {\n}\nstatic const auto kSquare = [](int x) {\n  return x * x;\n};\n")
        self.assertEqual(functions(text), {"F": 3, "K": 2, "kSquare": 3})

    def test_constants_of_a_function_do_not_count_and_code_in_them_does(self):
        table = "".join(f"      {{{n}, {n}}},\n" for n in range(100))
        text = "const Map& Table() {\n  static const Map map = {\n" + table + "  };\n  return map;\n}\n"
        self.assertEqual(functions(text), {"Table": 3})
        code = "    if (x) y();\n" * 100
        text = "int Hidden() {\n  static const int value = [] {\n" + code + "    return 1;\n  }();\n  return value;\n}\n"
        self.assertEqual(functions(text), {"Hidden": 106})

    def test_variables_are_no_functions(self):
        self.assertEqual(functions("const Table kTable = {{1, F(2)}};\nint a{3};\nenum class E { kA, kB };\nextern int b;\n"), {})

    def test_branches_that_do_not_balance_are_read_once(self):
        text = "#if A\nvoid F(int a) {\n#else\nvoid F() {\n#endif\n  x();\n}\nvoid G() {}\n"
        self.assertEqual(functions(text), {"F": 6, "G": 1})

    def test_a_file_that_does_not_balance_is_refused(self):
        with self.assertRaises(ValueError):
            cpp_scan.Scan("void F() { {\n}\n")
        with self.assertRaises(ValueError):
            cpp_scan.Scan("void F() {}\n}\n")


class Classes(unittest.TestCase):
    def test_data_members_are_told_from_everything_else(self):
        text = ("class A final : public B<int> {\n public:\n  explicit A(int a);\n  std::function<void(int)> call = [](int) {};\n"
                "  int a_ = F(1), b_[3];\n  std::map<int, std::pair<int, int>> c_{};\n  static constexpr int kD = 4;\n"
                "  using E = int;\n  friend class G;\n  enum H { kI };\n  struct J {\n    int k;\n  };\n  J l_;\n  virtual int m() const = 0;\n"
                "  std::array<int, 2> n_;\n};\n")
        self.assertEqual(classes(text), {"A": (17, 6, True), "A::J": (3, 1, False)})

    def test_a_struct_without_functions_is_told_from_one_with(self):
        text = "struct A {\n  int a;\n  bool operator==(const A&) const = default;\n};\nstruct B {\n  int b;\n  int c() const { return b; }\n};\n"
        self.assertEqual(classes(text), {"A": (4, 1, False), "B": (4, 1, True)})

    def test_a_forward_declaration_is_no_class(self):
        self.assertEqual(classes("class A;\nstruct B* F();\nclass alignas(64) C {\n  D d;\n};\n"), {"C": (3, 1, False)})


class Limits(unittest.TestCase):
    @staticmethod
    def sizes(**files):
        return cpp_scan.sizes_of([(pathlib.Path(name.replace("__", "/").replace("_cc", ".cc").replace("_h", ".h")),
                                    cpp_scan.Scan(text)) for name, text in files.items()])

    def problems(self, sizes, exceptions):
        return list(size_test.problems_of(sizes, {cpp_scan.Entry(*key): size for key, size in exceptions.items()}))

    def test_functions_of_all_files_count_to_their_class_once(self):
        header = "class A {\n  int a() {\n    return 1;\n  }\n  int b();\n  int c();\n};\n"
        sizes = self.sizes(lib__x__a_h=header, lib__x__a_cc="int A::b() {\n}\n", lib__x__c_cc="int A::c() {\n\n}\n",
                           lib__y__a_cc="int A::c() {\n\n}\n")
        self.assertEqual(sizes[cpp_scan.Entry("class", "lib/x", "A")], 7 + 2 + 3)

    def test_classes_of_two_source_files_are_two(self):
        text = "class A {\n  int b();\n};\nint A::b() {\n}\n"
        sizes = self.sizes(lib__x__a_cc=text, lib__x__c_cc=text)
        self.assertEqual(sizes[cpp_scan.Entry("class", "lib/x", "A")], 5)

    def test_what_is_too_large_is_named(self):
        sizes = self.sizes(lib__x__a_cc="void F() {\n" + "  x();\n" * 79 + "}\n",
                           lib__x__b_h="class C {\n  C();\n" + "  int a;\n" * 21 + "};\nstruct D {\n" + "  int a;\n" * 21 + "};\n",
                           lib__x__c_h="class E {\n" + "  int f();\n" * 399 + "};\n")
        problems = self.problems(sizes, {})
        self.assertEqual([problem.split(":")[0] for problem in problems],
                         ["class lib/x E", "function lib/x F", "members lib/x C"])

    def test_what_keeps_the_limit_passes(self):
        sizes = self.sizes(lib__x__a_cc="void F() {\n" + "  x();\n" * 78 + "}\n")
        self.assertEqual(self.problems(sizes, {}), [])

    def test_exceptions_may_only_shrink(self):
        sizes = self.sizes(lib__x__a_cc="void F() {\n" + "  x();\n" * 88 + "}\nvoid G() {}\n")
        self.assertEqual(self.problems(sizes, {("function", "lib/x", "F"): 90}), [])
        self.assertEqual(self.problems(sizes, {("function", "lib/x", "F"): 95}), [])
        self.assertIn("has grown from 89 to 90", self.problems(sizes, {("function", "lib/x", "F"): 89})[0])
        small = self.problems(sizes, {("function", "lib/x", "F"): 90, ("function", "lib/x", "G"): 90})
        self.assertIn("small enough", small[0])
        self.assertIn("is no more", self.problems(sizes, {("function", "lib/x", "F"): 90, ("function", "lib/x", "H"): 90})[0])

    def test_layers_that_were_laid_anew_have_no_exceptions(self):
        layer = f"lib/{size_test.RELAID[0]}"
        sizes = {cpp_scan.Entry("function", layer, "F"): 90}
        self.assertIn("has no exceptions", self.problems(sizes, {("function", layer, "F"): 90})[0])

    def test_update_strikes_off_and_adds_nothing(self):
        sizes = self.sizes(lib__x__a_cc="void F() {\n" + "  x();\n" * 88 + "}\nvoid G() {}\nvoid H() {\n" + "  x();\n" * 88 + "}\n")
        text = "# why\nfunction lib/x F 99\nfunction lib/x G 99\n"
        self.assertEqual(size_test.updated_list(text, sizes, size_test.read_list(text)), "# why\nfunction lib/x F 90\n")


class Lines(unittest.TestCase):
    @staticmethod
    def problems(name, text):
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
            file.write(text)
            file.flush()
            return list(format_test.line_problems(pathlib.Path(file.name), name))

    def test_a_wide_line_is_refused_but_in_a_raw_literal_outside_tools(self):
        for text in ("int a;  // " + "x" * 100 + "\n", 'f("' + "x" * 110 + '");\n'):
            self.assertEqual(self.problems("lib/a.cc", text), ["lib/a.cc:1: more than 110 columns"])
        raw = 'f(R"(' + "x" * 110 + ')");\n'
        self.assertEqual(self.problems("tests/a.cc", raw), [])
        self.assertEqual(self.problems("tools/a.cc", raw), ["tools/a.cc:1: more than 110 columns"])

    def test_prose_in_literals_of_tools_is_refused(self):
        prose = "f(" + '"' + "x" * 99 + '"\n' * 1 + ('  "' + "y" * 99 + '"\n') * 5 + ");\n"
        self.assertIn("tools/text", self.problems("tools/a.cc", prose)[0])
        self.assertEqual(self.problems("lib/a.cc", prose), [])
        self.assertEqual(self.problems("tools/a.cc", prose.replace('"\n  "y', '",\n  "y')), [])


if __name__ == "__main__":
    unittest.main()
