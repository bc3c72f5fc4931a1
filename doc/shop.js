// Keeps 2,000 pictures of 20 kB in Buffers, for doc/languages.md.
const orders = [];

function makePicture(i) {
	return Buffer.alloc(20000 + i, 'x');
}

function addOrder(i) {
	orders.push({id: i, picture: makePicture(i)});
}

for (let i = 0; i < 2000; i++)
	addOrder(i);
