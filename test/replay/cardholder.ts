/** Whose cards they are: nothing of this may be in a history. */
export const CARDHOLDER = {
  card_name: 'Quokka travel',
  cardholder_first_name: 'Zebulon',
  cardholder_last_name: 'Quagmire',
  email: 'zebulon@quagmire.example',
};
