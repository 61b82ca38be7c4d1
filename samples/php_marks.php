<?php
/* php_marks.php - allocates in functions of many kinds, and tells where
 *
 * usage: php php_marks.php PART COUNT FILE [wait]
 *
 * Each block is kept, and FILE gets the PHP frames of each, as debug_backtrace() has them: JSON, a list of
 * [frames, blocks, bytes].  The frames are [function, file, line], the outermost first, without those of
 * functions of C.  PART is what calls: sample, generators, callbacks, exceptions, magic, files, fibers,
 * recursion, deep, or all but the last.  With wait it says so, and begins when its standard input has a line.
 *
 * Start it with USE_ZEND_ALLOC=0: else PHP has blocks of its own, which nobody else sees.  It ends by a
 * signal, so that the blocks stay.
 */
declare(strict_types=1);

namespace Marks;

$kept = [];
$told = [];
$limit = 0;

/** The frames of whoever called mark(), and mark() itself at $line, the outermost first. */
function frames(int $line): array
{
    $calls = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $frames = [];
    for ($i = 1; $i < count($calls); $i++) {
        /* where a function is called, in the one that has the next place; functions of C have no file */
        if ($i > 1 && isset($calls[$i - 1]["file"])) {
            $frames[] = [name_of($calls[$i]), $calls[$i - 1]["file"], $calls[$i - 1]["line"]];
        } elseif ($i == 1) {
            $frames[] = [name_of($calls[1]), __FILE__, $line];
        }
    }
    $last = $calls[count($calls) - 1];
    if (isset($last["file"])) {
        $frames[] = ["{main}", $last["file"], $last["line"]];
    }
    return array_reverse($frames);
}

/** A file's own code has no name; what includes it does not tell one, either. */
function name_of(array $call): string
{
    if (in_array($call["function"], ["include", "include_once", "require", "require_once", "eval"])) {
        return "{main}";
    }
    /* behind a class without a name there is a byte that is 0, and where it is from */
    return (isset($call["class"]) ? strtok($call["class"], "\0") . "::" : "") . $call["function"];
}

/** Allocate, and note who called. */
function mark(): bool
{
    global $kept, $told, $limit;
    $nr = count($kept);
    if ($nr >= $limit) {
        return false;
    }
    $size = 600 + $nr % 997;
    $line = __LINE__ + 1;
    $block = str_repeat("x", $size);
    $kept[] = $block;
    $told[] = [frames($line), $size + 32]; /* as str_repeat() takes it */
    return true;
}

class Tree
{
    private array $children = [];

    public function __construct(int $depth)
    {
        for ($i = 0; $depth && $i < 2; $i++) {
            $this->children[] = new Tree($depth - 1);
        }
        mark();
    }

    public function walk(): void
    {
        foreach ($this->children as $child) {
            $child->walk();
        }
        (fn() => mark())();
        self::visit($this);
    }

    private static function visit(self $tree): void
    {
        mark();
    }
}

function part_sample(): void
{
    (new Tree(4))->walk();
    $numbers = range(1, 9);
    usort($numbers, function ($a, $b) {
        mark();
        return $b <=> $a;
    });
}

function numbers(int $depth): \Generator
{
    if ($depth) {
        yield from numbers($depth - 1);
    }
    mark();
    yield $depth;
    mark();
}

function receive(): \Generator
{
    while (mark()) {
        $got = yield;
        mark();
        if ($got === 3) {
            return yield from numbers(2);
        }
    }
}

class Listed implements \IteratorAggregate
{
    public function getIterator(): \Iterator
    {
        mark();
        yield from numbers(1);
        yield from new \ArrayIterator([1, mark(), 2]);
    }
}

function part_generators(): void
{
    foreach (numbers(9) as $number) {
        mark();
    }
    iterator_to_array(numbers(0), false);
    $receiver = receive();
    for ($i = 0; $i < 6 && $receiver->valid(); $i++) {
        $receiver->send($i);
    }
    foreach (new Listed() as $number) {
        mark();
    }
    /* two that delegate to one */
    $shared = numbers(2);
    $outer = fn() => yield from $shared;
    foreach ([$outer(), $outer()] as $generator) {
        $generator->current();
        $generator->next();
    }
}

function part_callbacks(): void
{
    array_map(fn($i) => mark(), range(1, 5));
    array_map("Marks\\mark", []);
    array_filter([1, 2, 3], function ($i) {
        return mark();
    });
    $nested = [[1, 2], 3];
    array_walk_recursive($nested, fn() => mark());
    preg_replace_callback("/[a-c]/", fn($found) => mark() ? "x" : "y", "abcdef");
    call_user_func([new Tree(0), "walk"]);
    call_user_func_array("Marks\\part_leaf", [1]);
    (new \ReflectionFunction("Marks\\part_leaf"))->invoke(2);
    $first = part_leaf(...);
    $first(3);
    spl_autoload_register(function ($class) {
        mark();
    });
    class_exists("Marks\\Missing" . random_int(0, 1000000));
    array_map(null, spl_autoload_functions());
    foreach (spl_autoload_functions() as $function) {
        spl_autoload_unregister($function);
    }
}

function part_leaf(int $i): void
{
    mark();
}

class Doomed
{
    public function __destruct()
    {
        mark();
    }
}

function fail(int $depth): void
{
    $doomed = new Doomed();
    try {
        if (!$depth) {
            throw new \RuntimeException("as planned");
        }
        fail($depth - 1);
    } finally {
        mark();
    }
}

function part_exceptions(): void
{
    try {
        fail(6);
    } catch (\RuntimeException $e) {
        mark();
    }
    $doomed = new Doomed();
    $doomed = null;
    set_error_handler(function () {
        mark();
        return true;
    });
    trigger_error("as planned");
    restore_error_handler();
}

class Magic implements \ArrayAccess, \Countable, \JsonSerializable, \Stringable
{
    public function __get(string $name): mixed
    {
        mark();
        return $name;
    }

    public function __call(string $name, array $values): mixed
    {
        mark();
        return $name;
    }

    public static function __callStatic(string $name, array $values): mixed
    {
        mark();
        return $name;
    }

    public function __toString(): string
    {
        mark();
        return "magic";
    }

    public function __invoke(int $i): void
    {
        mark();
    }

    public function offsetExists(mixed $offset): bool
    {
        return mark();
    }

    public function offsetGet(mixed $offset): mixed
    {
        return mark();
    }

    public function offsetSet(mixed $offset, mixed $value): void
    {
        mark();
    }

    public function offsetUnset(mixed $offset): void
    {
        mark();
    }

    public function count(): int
    {
        mark();
        return 3;
    }

    public function jsonSerialize(): mixed
    {
        mark();
        return [1, 2, 3];
    }
}

trait Shared
{
    public function share(): void
    {
        mark();
        static::late();
    }
}

abstract class Base
{
    use Shared;

    protected static function late(): void
    {
        mark();
    }
}

class Derived extends Base
{
    protected static function late(): void
    {
        parent::late();
        mark();
    }
}

enum Suit: string
{
    case Hearts = "H";

    public function label(): string
    {
        mark();
        return $this->value;
    }
}

function part_magic(): void
{
    $magic = new Magic();
    $magic->missing;
    $magic->call(1);
    Magic::call(2);
    $text = "$magic";
    $magic(1);
    isset($magic[1]);
    $value = $magic[1];
    $magic[1] = 2;
    unset($magic[1]);
    count($magic);
    json_encode([$magic, $magic]);
    (new Derived())->share();
    Suit::Hearts->label();
    $anonymous = new class () {
        public function go(): void
        {
            mark();
        }
    };
    $anonymous->go();
}

function part_files(): void
{
    eval('Marks\mark(); function () { }; (fn() => \Marks\mark())();');
    $path = tempnam(sys_get_temp_dir(), "marks");
    file_put_contents($path, "<?php\nnamespace Marks;\n\nmark();\nreturn fn() => mark();\n");
    $function = include $path;
    $function();
    (require $path)();
    unlink($path);
}

function suspend(int $depth): void
{
    if ($depth) {
        suspend($depth - 1);
        return;
    }
    mark();
    \Fiber::suspend();
    mark();
}

function part_fibers(): void
{
    $fiber = new \Fiber(function () {
        mark();
        suspend(3);
        array_map(fn($i) => suspend($i), [1, 2]);
    });
    $fiber->start();
    while (!$fiber->isTerminated()) {
        mark();
        $fiber->resume();
    }
}

function recur(int $depth): void
{
    if (!$depth) {
        mark();
    } elseif ($depth % 3) {
        recur($depth - 1);
    } else {
        array_map("Marks\\recur", [$depth - 1]);
    }
}

function part_recursion(): void
{
    recur(90);
    for ($depth = 0; $depth < 30; $depth += 3) {
        recur($depth);
    }
}

function part_deep(): void
{
    recur(300);
}

const PARTS = ["sample", "generators", "callbacks", "exceptions", "magic", "files", "fibers", "recursion"];

function part_all(): void
{
    foreach (PARTS as $part) {
        ("Marks\\part_" . $part)();
    }
}

function main(array $arguments): void
{
    global $kept, $told, $limit;
    $part = "Marks\\part_" . $arguments[1];
    $limit = (int)$arguments[2];
    if (($arguments[4] ?? "") === "wait") {
        echo "ready\n";
        fgets(STDIN);
    }
    while (count($kept) < $limit) {
        $part();
    }
    $sums = [];
    foreach ($told as [$frames, $size]) {
        $key = json_encode($frames);
        $sums[$key] ??= [$frames, 0, 0];
        $sums[$key][1]++;
        $sums[$key][2] += $size;
    }
    file_put_contents($arguments[3], json_encode(array_values($sums)));
    posix_kill(getmypid(), SIGKILL);
}

main($argv);
