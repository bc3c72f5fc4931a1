import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.zip.Deflater;

/* Keeps pictures in native memory, and packs them with a Deflater that it forgets to end. */
public class Stock {
	private final ArrayDeque<ByteBuffer> pictures = new ArrayDeque<>();
	private final ArrayDeque<Deflater> open = new ArrayDeque<>();

	private static ByteBuffer load(int size) {
		ByteBuffer picture = ByteBuffer.allocateDirect(size);
		for (int i = 0; i < size; i++)
			picture.put(i, (byte) (i * i));
		return picture;
	}

	private int pack(ByteBuffer picture) {
		Deflater deflater = new Deflater(9);
		deflater.setInput(picture.duplicate());
		deflater.finish();
		open.add(deflater);
		return deflater.deflate(new byte[100000]);
	}

	private void serve(int i) {
		ByteBuffer picture = load(10000 + i % 7 * 1000);
		if (i % 10 == 0)
			pack(picture);
		pictures.add(picture);
		if (pictures.size() > 100)
			pictures.remove();
	}

	public static void main(String[] args) {
		Stock stock = new Stock();
		for (int i = 0; i < 500; i++)
			stock.serve(i);
	}
}
