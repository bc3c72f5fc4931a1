/*
 * Java that knows its stacks: calls at random through methods of all kinds, at whose ends it allocates blocks of sizes that
 * nothing else has, and prints what StackWalker says of the same line.
 *
 *	java Stacks ROUNDS WARM    after WARM rounds of unrecorded calls it prints "warm" and waits for a line
 *
 * Output: "S SIZE", a line "F METHOD FILE LINE" for each frame of this file, innermost first, and "."; at the end "end".
 */
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import sun.misc.Unsafe;

public class Stacks {
	interface Step {
		void go(Stacks s, int depth);
	}

	static class Plain implements Step {
		public void go(Stacks s, int depth) {
			s.next(depth);
		}
	}

	static class Locked implements Step {
		public synchronized void go(Stacks s, int depth) {
			s.next(depth);
		}
	}

	static class Caught implements Step {
		public void go(Stacks s, int depth) {
			try {
				s.next(depth);
				throw new IllegalStateException();
			} catch (IllegalStateException e) {
				s.caught++;
			}
		}
	}

	static final int FIRST = 50000, WARM_SIZE = 24;
	static final Unsafe unsafe = findUnsafe();
	static final StackWalker walker = StackWalker.getInstance();

	final Random random;
	final Step[] steps;
	final List<String> said = new ArrayList<>();
	int size = WARM_SIZE, grows, caught;
	Method reflected;

	static Unsafe findUnsafe() {
		try {
			Field field = Unsafe.class.getDeclaredField("theUnsafe");
			field.setAccessible(true);
			return (Unsafe) field.get(null);
		} catch (ReflectiveOperationException e) {
			throw new RuntimeException(e);
		}
	}

	Stacks(long seed) throws Exception {
		random = new Random(seed);
		reflected = Stacks.class.getDeclaredMethod("byReflection", Stacks.class, int.class);
		steps = new Step[] {
			new Plain(), new Locked(), new Caught(),
			Stacks::byReference,
			(s, depth) -> s.next(depth),
			(s, depth) -> s.many(depth, 1, 2L, 3, 4.0, 5, 6L, 7, 8.0f, 9, 10),
			(s, depth) -> excluded(s, depth),
			(s, depth) -> s.excludedMany(depth, 1, 2L, 3, 4.0, 5, 6L, 7, 8.0f, 9, 10),
			(s, depth) -> s.sorted(depth),
			(s, depth) -> s.invoke(depth),
		};
	}

	static void byReference(Stacks s, int depth) {
		s.next(depth);
	}

	static void byReflection(Stacks s, int depth) {
		s.next(depth);
	}

	/* Named for -XX:CompileCommand=exclude: calls between compiled and interpreted code. */
	static void excluded(Stacks s, int depth) {
		s.next(depth);
	}

	long excludedMany(int depth, int a, long b, int c, double d, int e, long f, int g, float h, int i, int j) {
		next(depth);
		return a + b + c + (long) d + e + f + g + (long) h + i + j;
	}

	long many(int depth, int a, long b, int c, double d, int e, long f, int g, float h, int i, int j) {
		next(depth);
		return a + b + c + (long) d + e + f + g + (long) h + i + j;
	}

	void sorted(int depth) {
		int[] left = {1};
		Arrays.sort(new Integer[] {2, 1}, (x, y) -> {
			if (left[0]-- == 1)
				next(depth);
			return x - y;
		});
	}

	void invoke(int depth) {
		try {
			reflected.invoke(null, this, depth);
		} catch (ReflectiveOperationException e) {
			throw new RuntimeException(e);
		}
	}

	void next(int depth) {
		if (depth == 0)
			leaf();
		else
			steps[random.nextInt(steps.length)].go(this, depth - 1);
	}

	void leaf() {
		size += grows;
		long block = unsafe.allocateMemory(size); note();
		unsafe.freeMemory(block);
	}

	void note() {
		StringBuilder text = new StringBuilder("S " + size + "\n");
		walker.forEach(f -> {
			if (f.getClassName().startsWith("Stacks") && !f.getMethodName().equals("note"))
				text.append("F " + f.getClassName() + "." + f.getMethodName() + " " + f.getFileName() + " " +
					    f.getLineNumber() + "\n");
		});
		said.add(text.append(".").toString());
	}

	void rounds(int count) {
		for (int i = 0; i < count; i++)
			next(random.nextInt(7));
	}

	void run(int rounds, int warm) {
		while (warm > 0) {
			rounds(Math.min(warm, 1000));
			warm -= 1000;
			said.clear();
		}
		System.out.println("warm");
		try {
			while (System.in.read() != '\n')
				continue;
		} catch (java.io.IOException e) {
			return;
		}
		size = FIRST - 8;
		grows = 8;
		rounds(rounds);
	}

	public static void main(String[] args) throws Exception {
		Stacks s = new Stacks(args.length > 2 ? Long.parseLong(args[2]) : 1);
		Thread thread = new Thread(() -> s.run(Integer.parseInt(args[0]), Integer.parseInt(args[1])));
		thread.start();
		thread.join();
		PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out));
		for (String text : s.said)
			out.println(text);
		out.println("end");
		out.flush();
		System.in.read();
	}
}
