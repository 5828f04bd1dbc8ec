// What the examples of all rooms share.

export const REQUEST_ID = 'req_01m810261f56tm02pjpg6322pv';

export const OPERATION_ID = 'op_01m8102545y9zmj2q0v8dtd6pk';

export const exampleList = <Item>(...data: Item[]) => ({
  object: 'list',
  data,
  has_more: false,
  next_cursor: null,
});
